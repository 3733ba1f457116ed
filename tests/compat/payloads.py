"""Checkpoints that would act: pickles that run code, change classes, or take all memory.

A payload is written as the opcodes that leave one object on the stack. `write` puts it into a
checkpoint of one of the three formats of torch.
"""

import io
import pickle
import tarfile
import zipfile
from typing import Any, Callable, Dict, NamedTuple

FORMATS = ("zip", "legacy", "tar")


class Payload(NamedTuple):
    """body: marker path -> opcodes. acts: True if a plain unpickler makes the marker."""

    body: Callable[[str], bytes]
    acts: bool = True


def plain(value: Any) -> bytes:
    """The opcodes of a harmless object."""
    return pickle.dumps(value, 2)[2:-1]


def name(full: str) -> bytes:
    """The opcode that names a class or function."""
    module, _, attribute = full.rpartition(".")
    return f"c{module}\n{attribute}\n".encode()


def call(full: str, *arguments: Any) -> bytes:
    """The opcodes of a call with harmless arguments."""
    return name(full) + plain(arguments) + b"R"


def calls(full: str, *keep: Any) -> Payload:
    """A call in which MARKER stands for the path, also within longer strings."""

    def body(marker: str) -> bytes:
        return call(full, *(_filled(x, marker) for x in keep))

    return Payload(body)


def refused_only(opcodes: Callable[[str], bytes]) -> Payload:
    """A payload that must be refused, and whose effect is not shown: a crash, or a bomb."""
    return Payload(opcodes, acts=False)


def _filled(value: Any, marker: str) -> Any:
    if isinstance(value, str):
        return value.replace("MARKER", marker)
    if isinstance(value, (list, tuple)):
        return type(value)(_filled(item, marker) for item in value)
    return value


CODE = "__import__('os').mkdir('MARKER')"
OBJECT_FIELD = (3, "|", None, ("a",), {"a": "O"}, 8, 8, 63)

PAYLOADS: Dict[str, Payload] = {
    "os.mkdir": calls("os.mkdir", "MARKER"),
    "os.makedirs": calls("os.makedirs", "MARKER"),
    "os.system": calls("os.system", "mkdir MARKER"),
    "posix.mkdir": calls("posix.mkdir", "MARKER"),
    "os.mkfifo": calls("os.mkfifo", "MARKER"),
    "os.symlink": calls("os.symlink", "/", "MARKER"),
    "subprocess.check_call": calls("subprocess.check_call", ["mkdir", "MARKER"]),
    "subprocess.getoutput": calls("subprocess.getoutput", "mkdir MARKER"),
    "builtins.eval": calls("builtins.eval", CODE),
    "builtins.exec": calls("builtins.exec", CODE),
    "builtins.open": calls("builtins.open", "MARKER", "w"),
    "__builtin__.eval": calls("__builtin__.eval", CODE),
    "io.open": calls("io.open", "MARKER", "w"),
    "functools.partial": Payload(
        lambda path: name("functools.partial") + b"(" + name("os.mkdir") + plain(path) + b"tR)R"
    ),
    "shutil.copyfile": calls("shutil.copyfile", __file__, "MARKER"),
    "shutil.copy": calls("shutil.copy", __file__, "MARKER"),
    "timeit.timeit": calls("timeit.timeit", CODE, "pass", None, 1)._replace(acts=False),
    "builtins.map": Payload(
        lambda path: (
            name("builtins.list")
            + (name("builtins.map") + b"(" + name("os.mkdir") + plain([path]) + b"tR")
            + b"\x85R"
        )
    ),
    "logging.FileHandler": calls("logging.FileHandler", "MARKER"),
    "torch.save": calls("torch.save", [], "MARKER"),
    "torch.utils.collect_env.run": calls("torch.utils.collect_env.run", "mkdir MARKER"),
    "pickle.loads": Payload(
        lambda path: call("pickle.loads", b"\x80\x02" + call("os.mkdir", path) + b".")
    ),
    "fairseq.utils.eval_bool": calls("fairseq.utils.eval_bool", CODE)._replace(acts=False),
    "fairseq.utils.import_user_module": refused_only(
        lambda path: call("fairseq.utils.import_user_module", None)
    ),
    "importlib.import_module": refused_only(lambda path: call("importlib.import_module", "this")),
    "builtins.__import__": refused_only(lambda path: call("builtins.__import__", "this")),
    "builtins.getattr": refused_only(lambda path: call("builtins.getattr", "", "join")),
    "torch.load": refused_only(lambda path: call("torch.load", path)),
    "torch.hub.load": refused_only(lambda path: call("torch.hub.load", "a/b", "c")),
    "torch.jit.load": refused_only(lambda path: call("torch.jit.load", path)),
    "numpy.load": refused_only(lambda path: call("numpy.load", path)),
    "ctypes.CDLL": refused_only(lambda path: call("ctypes.CDLL", path)),
    "the opcode INST": Payload(lambda path: b"(" + plain(path) + b"ios\nmkdir\n"),
    "the opcode OBJ": Payload(lambda path: b"(" + name("os.mkdir") + plain(path) + b"o"),
    "the opcode STACK_GLOBAL": Payload(
        lambda path: plain("os") + plain("mkdir") + b"\x93" + plain((path,)) + b"R"
    ),
    "the opcode EXT1": refused_only(lambda path: b"\x82\x01"),
    "the opcode BYTEARRAY8": refused_only(lambda path: b"\x96" + (10**13).to_bytes(8, "little")),
    "the opcode NEWOBJ_EX": refused_only(
        lambda path: name("argparse.Namespace") + plain(()) + plain({"a": 1}) + b"\x92"
    ),
    "a state of the class Namespace": refused_only(
        lambda path: name("argparse.Namespace") + plain((None, {"user_dir": path})) + b"b"
    ),
    "a state of the class Dictionary": refused_only(
        lambda path: name("fairseq.data.dictionary.Dictionary") + plain((None, {"pad": 1})) + b"b"
    ),
    "the attribute __class__": refused_only(
        lambda path: name("argparse.Namespace") + b")\x81" + plain((None, {"__class__": 1})) + b"b"
    ),
    "the attribute __setstate__": refused_only(
        lambda path: name("argparse.Namespace") + b")\x81" + plain({"__setstate__": 1}) + b"b"
    ),
    "a persistent id of a module": refused_only(
        lambda path: b"(" + plain("module") + name("argparse.Namespace") + plain(path) * 2 + b"tQ"
    ),
    "a forged number of numpy": refused_only(
        lambda path: call("numpy.dtype", "f8", False, True) + plain(OBJECT_FIELD) + b"b"
    ),
    "a void type of numpy": refused_only(lambda path: call("numpy.dtype", "V8", False, True)),
    "an object type of numpy": refused_only(lambda path: call("numpy.dtype", "O", False, True)),
    "an array of 10**13 numbers": refused_only(lambda path: call("numpy.ndarray", (10**13,))),
    "a bytearray of 10**13 bytes": refused_only(lambda path: call("builtins.bytearray", 10**13)),
    "a storage of 10**13 numbers": refused_only(
        lambda path: (
            b"("
            + plain("storage")
            + name("torch.FloatStorage")
            + b"".join(map(plain, ("0", "cpu", 10**13)))
            + b"tQ"
        )
    ),
    "a resolver in an object of omegaconf": refused_only(
        lambda path: (
            name("omegaconf.nodes.AnyNode") + b")\x81" + plain({"_val": "${oc.env:HOME}"}) + b"b"
        )
    ),
    "hooks of a parameter": refused_only(  # called with its gradient
        lambda path: (
            name("torch.nn.parameter.Parameter")
            + b")\x81"
            + b"(NN}"
            + plain(1)
            + name("_codecs.encode")
            + b"s\x88Ntb"
        )
    ),
    "a key of ten thousand tuples": refused_only(
        lambda path: b"}" + b")" + b"\x85" * 10_000 + b"Ns"
    ),
}


def state(body: bytes) -> bytes:
    """The pickle of a checkpoint with the payload in its extra state."""
    rest = plain("args") + b"N" + plain("cfg") + plain({"model": {}}) + plain("model") + b"}"
    return b"\x80\x02}(" + rest + plain("extra_state") + body + b"u."


def write(path: Any, raw: bytes, kind: str) -> str:
    """Write a checkpoint of one of FORMATS with this pickle; returns its path."""
    import torch

    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("archive/data.pkl", raw)
            archive.writestr("archive/version", "3\n")
    elif kind == "legacy":
        system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
        head = (torch.serialization.MAGIC_NUMBER, torch.serialization.PROTOCOL_VERSION, system)
        pieces = [pickle.dumps(x, 2) for x in head]
        path.write_bytes(b"".join((*pieces, raw, pickle.dumps([], 2))))
    else:
        empty = pickle.dumps(0, 2)
        with tarfile.open(path, "w") as archive:
            for member, content in (
                ("storages", empty + pickle.dumps([], 2)),
                ("tensors", empty),
                ("pickle", raw),
            ):
                info = tarfile.TarInfo(member)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return str(path)
