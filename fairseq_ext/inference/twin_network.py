def load_twin(cfg, state, task): return None
