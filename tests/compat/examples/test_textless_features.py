"""Features for textless_nlp (fairseq_ext/compat/examples/textless_features.py)."""

from types import SimpleNamespace

from fairseq_ext.compat.examples.textless_features import features_of_new_checkpoints


class Model:
    def eval(self):
        return self

    cuda = eval


def test_checkpoints_are_loaded_with_their_task():
    def load(paths):
        return [model], "configuration", f"task of {paths[0]}"

    model = Model()
    module = SimpleNamespace(
        fairseq=SimpleNamespace(
            checkpoint_utils=SimpleNamespace(load_model_ensemble_and_task=load)
        ),
        Wav2VecFeatureReader=type("Wav2VecFeatureReader", (), {}),
    )
    features_of_new_checkpoints(module)
    reader = module.Wav2VecFeatureReader("a.pt", 3)
    assert (reader.model, reader.task, reader.layer) == (model, "task of a.pt", 3)
