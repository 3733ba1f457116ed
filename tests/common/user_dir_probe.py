"""Run as a script: gives --user-dir in several ways, each in a process that has only fairseq.

    python user_dir_probe.py DATA '{"name": {"user_dir": ..., "cwd": ..., "before": ...}, ...}'

Importing torch and fairseq takes seconds, so it happens once; each way is then tried in a fork.
Prints one JSON object: {name: {"model": class, "file": where the package came from} or
{"error": text}}.
"""

import json
import os
import pickle
import sys
import traceback


def build(data, user_dir):
    """Parse options with --user-dir as a command does and build a model -> a description."""
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    arguments = [data, "--user-dir", user_dir, "--task", "dual_translation", "-s", "xx", "-t", "yy"]
    arguments += ["--arch", "dual_transformer_tiny"]
    sys.argv = ["probe", *arguments]
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=arguments)
    cfg = convert_namespace_to_omegaconf(args)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    package = sys.modules["fairseq_ext"]
    return {"model": type(model).__module__, "file": package.__file__, "cfg": cfg}


def attempt(data, way):
    """One way, in this process."""
    os.chdir(way["cwd"])
    for folder in way.get("sys_path", []):
        sys.path.insert(0, folder)
    if way.get("before"):
        __import__("fairseq_ext")
    for _ in range(way.get("times", 1)):
        outcome = build(data, way["user_dir"])
    del outcome["cfg"]
    return outcome


def in_fork(function, *arguments):
    """Result of ``function`` in a child process, or {"error": text}."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = function(*arguments)
        except BaseException:  # noqa: BLE001  (reported to the parent, SystemExit included)
            result = {"error": traceback.format_exc()}
        with os.fdopen(writable, "wb") as pipe:
            pipe.write(pickle.dumps(result))
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        result = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    return result


def main():
    data, ways = sys.argv[1], json.loads(sys.argv[2])
    import fairseq.options
    import fairseq.tasks

    assert "fairseq_ext" not in sys.modules, f"{fairseq.__name__} alone must not import the plugin"
    print(json.dumps({name: in_fork(attempt, data, way) for name, way in ways.items()}))


if __name__ == "__main__":
    main()
