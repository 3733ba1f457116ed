def is_packed(path): return False
def read_packed(path): raise NotImplementedError
