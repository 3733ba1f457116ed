"""Fixtures that every test may use: data, the user-dir, a runner of commands, a toy corpus."""

import collections
import functools
import gc
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_server import CommandServer, environment

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "fairseq_ext"


def pytest_configure():
    """Look for garbage less often: thousands of modules and tests took a tenth of the time."""
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(items):
    """Skip what is marked `gpu` where there is none; torch is imported only when needed."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device; torch sees none"))


@pytest.fixture(scope="session")
def real_data():
    """Folder of the real corpora: $FAIRSEQ_EXT_DATA, else `shared/data` beside the repository."""
    named = os.environ.get("FAIRSEQ_EXT_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not a folder; name it with FAIRSEQ_EXT_DATA")
    return folder


@pytest.fixture(scope="session")
def user_dir():
    """The path to give to `--user-dir`."""
    return PACKAGE


class CommandFailed(AssertionError):
    """A command ended with the wrong status; the message holds the end of its output."""


def run_command(*command, cwd=None, env=None, stdin="", timeout=600, fails=False, fresh=False):
    """Run a command of the current environment and return its output, stdout and stderr together.

    command: name and arguments, each given to `str`. `python` is the running interpreter;
        other names are looked up beside it before PATH.
    env: variables on top of the present ones; OMP_NUM_THREADS is 1 unless given here.
    stdin: text for the standard input. timeout: seconds.
    fails: the command must end non-zero (tests of error messages).
    fresh: begin a process. Else fairseq's commands run in forks of one that has imported them
        (command_server.py), unless `env` or the environment differs.
    Raises CommandFailed when the status is not the expected one, with the end of the output.
    """
    name, *arguments = (str(word) for word in command)
    scripts = str(Path(sys.executable).parent)
    search = scripts + os.pathsep + os.environ.get("PATH", "")
    program = sys.executable if name == "python" else shutil.which(name, path=search)
    if program is None:
        raise CommandFailed(f"{name} is neither in {scripts} nor in PATH; run `make setup`")
    variables = {**environment(os.environ), "PATH": search, "OMP_NUM_THREADS": "1", **(env or {})}
    server = _command_server(_user_dir(arguments, cwd))
    if not fresh and server.runs(name, variables):
        status, output = server.run(program, arguments, cwd, stdin, timeout)
    else:
        finished = subprocess.run(
            [program, *arguments],
            cwd=cwd,
            env=variables,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
        status, output = finished.returncode, finished.stdout
    if (status != 0) != fails:
        line = " ".join([name, *arguments])
        tail = "\n".join(output.splitlines()[-40:])
        raise CommandFailed(f"status {status} of: {line}\n{tail}")
    return output


def _user_dir(arguments, cwd):
    """The package if the arguments name it with `--user-dir`, else None."""
    if "--user-dir" in arguments[:-1]:
        named = arguments[arguments.index("--user-dir") + 1]
        if Path(cwd or ".", named).absolute() == PACKAGE:
            return str(PACKAGE)
    return None


@functools.lru_cache(maxsize=None)
def _command_server(user_dir):
    """The test process's server of commands with this user-dir."""
    search = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
    return CommandServer({**os.environ, "PATH": search, "OMP_NUM_THREADS": "1"}, user_dir)


@pytest.fixture(scope="session")
def run():
    """`run_command`, see there: run("fairseq-train", folder, "--max-update", 2, cwd=tmp_path)."""
    return run_command


class ToyCorpus:
    """A small deterministic parallel corpus in three invented languages, line by line.

    xx: agent verb patient [time]; yy: [time] agent patient verb, other words;
    zz: verb patient agent [time], and the patient carries a suffix.
    text: folder with {train,valid,test}.{xx,yy,zz}.
    two, three: folders that fairseq-preprocess binarised when first asked for, with one joint
        dictionary: the pair xx-yy; the pairs xx-yy, xx-zz and yy-zz.
    """

    languages = ("xx", "yy", "zz")
    sizes = {"train": 240, "valid": 24, "test": 24}

    def __init__(self, folder):
        self.folder = Path(folder)
        self.text = self.folder / "text"
        self.text.mkdir(parents=True)
        self.lines = self._sentences(random.Random(7))
        for split, start, stop in self._ranges():
            for language in self.languages:
                part = self.lines[language][start:stop]
                path = self.text / f"{split}.{language}"
                path.write_text("".join(line + "\n" for line in part), encoding="utf-8")

    def _ranges(self):
        start = 0
        for split, size in self.sizes.items():
            yield split, start, start + size
            start += size

    def _sentences(self, rng):
        lines = {language: [] for language in self.languages}
        for _ in range(sum(self.sizes.values())):
            agent, patient = rng.sample(range(9), 2)
            verb, time = rng.randrange(8), rng.randrange(4)
            early = [f"ut{time}"] if time else []
            late = [f"at{time}"] if time else []
            lines["xx"].append([f"an{agent}", f"av{verb}", f"an{patient}", *late])
            lines["yy"].append([*early, f"un{agent}", f"un{patient}", f"uv{verb}"])
            lines["zz"].append([f"iv{verb}", f"in{patient}", "ko", f"in{agent}", *late])
        return {language: [" ".join(words) for words in lines[language]] for language in lines}

    @functools.cached_property
    def dictionary(self):
        """File with one dictionary for all languages, in fairseq's format `token count`."""
        words = collections.Counter()
        for language in self.languages:
            words.update((self.text / f"train.{language}").read_text(encoding="utf-8").split())
        ordered = sorted(words.items(), key=lambda entry: (-entry[1], entry[0]))
        path = self.folder / "dict.joint.txt"
        path.write_text("".join(f"{word} {n}\n" for word, n in ordered), encoding="utf-8")
        return path

    @functools.cached_property
    def two(self):
        return self._binarise("two", "xx-yy", ["--joined-dictionary"])

    @functools.cached_property
    def three(self):
        # not --joined-dictionary: with it fairseq-preprocess refuses the second pair, because the
        # dictionary file of its target is there already
        options = ["--srcdict", self.dictionary, "--tgtdict", self.dictionary]
        for pair in ("xx-yy", "xx-zz", "yy-zz"):
            folder = self._binarise("three", pair, options)
        return folder

    def _binarise(self, name, pair, options):
        source, target = pair.split("-")
        folder = self.folder / name
        command = ["fairseq-preprocess", "-s", source, "-t", target, "--destdir", folder]
        for split in self.sizes:
            command += [f"--{split}pref", self.text / split]
        run_command(*command, *options)
        return folder


@pytest.fixture(scope="session")
def toy_corpus(tmp_path_factory):
    """The session's ToyCorpus: `.text`, `.lines`, `.two`, `.three`."""
    return ToyCorpus(tmp_path_factory.mktemp("toy"))
