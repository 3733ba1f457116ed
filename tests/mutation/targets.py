"""The modules of the equations, losses, streams and searches, and the tests that must notice.

Fast tests only, mostly inside one process; the likeliest to fail come first.
"""

VALUES = "tests/test_paper_values.py"


def _tests(folder, *names):
    return [f"tests/{folder}/test_{name}.py" for name in names]


def _table(package, tests):
    return {
        f"fairseq_ext/{package}/{module}.py": listed
        for modules, listed in tests.items()
        for module in modules.split()
    }


TESTS = {
    **_table(
        "common",
        {
            "recurrent": [
                *_tests("common", "recurrent", "initial_values"),
                *_tests("multiway", "modules", "properties"),
            ],
            "padding": [
                *_tests("common", "padding", "recurrent"),
                *_tests("multiway", "properties"),
            ],
            "lstm": [*_tests("common", "lstm", "initial_values"), *_tests("multiway", "encoders")],
            "beam_search": _tests("common", "beam_search"),
            "fast_search": _tests("common", "fast_search"),
            "search_record search_rows": _tests(
                "common", "search_record", "search_rows", "beam_search"
            ),
            "losses criterion": _tests("common", "losses"),
            "sentence_steps transformer_steps": [
                *_tests("common", "sentence_steps", "transformer_steps"),
                *_tests("dual", "sentence_steps"),
            ],
            "transformer": [
                *_tests("common", "transformer", "decoding", "initial_values"),
                *_tests("dual", "modules", "model"),
            ],
            "optimizer": [
                *_tests("common", "optimizer"),
                "--deselect=tests/common/test_optimizer.py::"
                "test_a_resumed_run_is_the_uninterrupted_run",
            ],
            "decoding": [*_tests("common", "decoding"), *_tests("multiway", "properties")],
            "labels": _tests("common", "labels"),
            "dropout": _tests("common", "dropout"),
            "attention": [*_tests("common", "attention"), *_tests("multiway", "modules")],
            "attention_gradient": _tests("common", "attention_gradient"),
            "layers": _tests("common", "layers", "initial_values"),
            "products": _tests("common", "products"),
            "log_sums": _tests("common", "log_sums"),
            "hashed_random": _tests("common", "hashed_random"),
            "greedy_search": _tests("common", "greedy_search"),
            "corpus_bleu": _tests("common", "corpus_bleu"),
        },
    ),
    **_table(
        "multiway",
        {
            "modules": [
                *_tests("multiway", "modules", "properties", "attentive_gru", "dropout"),
                VALUES,
            ],
            "attentive_gru": _tests("multiway", "attentive_gru", "modules"),
            "encoders": _tests("multiway", "encoders"),
            "deep_fusion/modules": [
                *_tests("multiway", "deep_fusion_modules", "language_model", "dropout"),
                VALUES,
            ],
            "deep_fusion/model": _tests("multiway", "deep_fusion", "deep_fusion_modules"),
            "search_step": _tests("multiway", "search_step", "properties"),
            "task": _tests("multiway", "sources"),
        },
    ),
    **_table(
        "routed",
        {
            "modules": _tests(
                "routed", "modules", "encoder_decoder", "properties", "model", "dropout"
            ),
            "encoder_decoder": [
                *_tests("routed", "encoder_decoder", "routed_gru", "properties", "dropout"),
                VALUES,
            ],
            "routed_gru": _tests("routed", "modules", "encoder_decoder", "routed_gru"),
            "attentive_stack": _tests("routed", "attentive_stack", "encoder_decoder", "routed_gru"),
            "scores": _tests("routed", "scores"),
            "task_tokens": _tests("routed", "task_tokens"),
            "task_patience": _tests("routed", "task_patience", "task"),
            "validation": _tests("routed", "validation", "training"),
            "well_formed": _tests("routed", "well_formed"),
            "model": _tests("routed", "model", "config"),
            "task": _tests("routed", "task_tokens", "search_lengths", "validation", "task"),
        },
    ),
    **_table(
        "dual",
        {
            "transformer/modules": _tests("dual", "modules", "model", "places"),
            "lstm_classifier/modules": _tests("dual", "lstm_classifier", "places"),
            "lstm_classifier/model": _tests("dual", "lstm_classifier_criterion", "lstm_classifier"),
            "lstm_classifier/criterion": [
                *_tests("dual", "lstm_classifier_criterion", "lstm_classifier"),
                *_tests("dual", "label_options", "supervised_labels"),
                *_tests("dual", "lstm_classifier_runs"),
            ],
            "supervised/duality supervised/marginals": [
                *_tests("dual", "duality", "marginals", "supervised", "supervised_labels"),
                *_tests("dual", "supervised_runs", "supervised_labels_runs"),
            ],
            "supervised/labels": _tests("dual", "supervised_labels"),
            "lstm_classifier/label_sides": [
                *_tests("dual", "label_sides", "supervised_labels", "label_options"),
                *_tests("dual", "lstm_classifier", "lstm_classifier_runs"),
                *_tests("common", "search_options"),
            ],
            "reranker": _tests("dual", "reranker", "reranker_commands", "places"),
            "reverse_models": _tests(
                "dual", "reverse_models", "reranker", "reranker_commands", "lstm_classifier"
            ),
            "transformer/roles": _tests("dual", "roles", "directions"),
            "transformer/sentence_steps": _tests("dual", "sentence_steps"),
            "supervised/criterion": _tests("dual", "supervised", "supervised_labels"),
        },
    ),
    **_table(
        "duo",
        {
            "transformer/modules": _tests("duo", "modules", "model"),
            "transformer/sentence_steps": _tests("duo", "sentence_steps"),
            "classifier/criterion": _tests("duo", "criterion"),
            "transformer/layer": _tests("duo", "layer", "modules", "model"),
            "freezing": _tests("duo", "freezing"),
            "classifier/modules": [
                *_tests("duo", "classifier_modules"),
                *_tests("common", "initial_values"),
            ],
            "embedding_files": _tests("duo", "embedding_files"),
            "classifier/model": _tests("duo", "classifier", "freezing"),
        },
    ),
    **_table(
        "twin",
        {
            "modules": _tests("twin", "modules", "contract"),
            "contract": _tests("twin", "contract", "criterion"),
            "criterion": [*_tests("twin", "criterion"), VALUES],
            "attentive/lstm attentive/layer": _tests(
                "twin", "attentive_layer", "attentive_lstm", "speech_reference"
            ),
            "captions/modules": _tests("twin", "models", "speech_properties"),
            "speech/modules": _tests("twin", "speech_reference", "speech_properties"),
            "stock/lstm": _tests("twin", "models", "modules"),
            "stock/steps": _tests("twin", "steps"),
            "metrics": _tests("twin", "metrics"),
            "audio": _tests("twin", "audio"),
        },
    ),
    **_table(
        "streams",
        {
            "schedule": _tests("streams", "schedule"),
            "lang_pairs": _tests("streams", "lang_pairs", "requested_direction"),
            "dataset": _tests("streams", "dataset"),
            "plan": _tests("streams", "plan", "iterator"),
            "iterator": _tests("streams", "iterator"),
            "assignment": _tests("streams", "assignment", "pair_parallel"),
            "pair_parallel_plan": _tests("streams", "pair_parallel_plan"),
            "pair_parallel": _tests("streams", "pair_parallel"),
            "reducer": _tests("streams", "reducer"),
            "steps": _tests("streams", "steps"),
            "patience": _tests("streams", "patience"),
            "metrics": _tests("streams", "metrics"),
            "bleu": _tests("streams", "bleu"),
            "back_translation": _tests("streams", "back_translation", "synthetic", "monolingual"),
            "synthetic_noise": _tests("streams", "synthetic_noise"),
            "synthetic_share mixed_plan": _tests("streams", "synthetic_share", "mixed_plan"),
            "sentence_sets": _tests("streams", "sentence_sets"),
            "direction marked_sources": _tests("streams", "direction", "marked_sources"),
            "parameter_groups": _tests("streams", "parameter_groups"),
            "pair_data": _tests("streams", "pair_data", "task"),
            "batching": _tests("streams", "batching", "sentence_sets"),
            "state": _tests("streams", "state", "plan", "mixed_plan"),
            "synthetic": _tests("streams", "synthetic", "monolingual"),
            "loading": _tests("streams", "loading", "task", "frozen", "monolingual", "synthetic"),
        },
    ),
    **_table(
        "tools",
        {
            "checkpoint/average": _tests("tools", "average"),
            "evaluate/intervals": _tests("tools", "intervals"),
        },
    ),
    **_table(
        "compat",
        {
            f"{folder}/{module}": _tests(f"compat/{folder}", module)
            for folder, modules in {
                "optimizers": "schedules model_averages adafactor_rates block_updates",
                "losses": "sentence_classes alignment_losses adaptive_losses noised_embeddings",
                "training": "epoch_positions skipped_updates",
                "data": "resampled_sets upsampled_sets denoising text_blocks",
                "generation": "constraint_states fused_language_models length_limits",
                "architectures": "attended_padding padded_frames",
                "versions": "ngram_blocking",
            }.items()
            for module in modules.split()
        },
    ),
    **_table(
        "compat/command_line",
        {
            "search_checks training_checks validation_search": _tests(
                "compat/command_line", "option_checks", "validation_options"
            ),
            "companion_options": _tests("compat/command_line", "unread_options"),
        },
    ),
}
