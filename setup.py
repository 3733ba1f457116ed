"""The distribution `fairseq-ext`: what it holds, what it needs, and its start-up file.

`zz_fairseq_ext.pth` must lie in site-packages whichever way the project is installed: the commands
below put it into ordinary wheels and into editable ones, which setuptools has no option for.
"""

import base64
import hashlib
import re
import zipfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.editable_wheel import editable_wheel
except ImportError:  # before setuptools 64; pip then says that it cannot install editably
    editable_wheel = None

HERE = Path(__file__).resolve().parent
START = "zz_fairseq_ext.pth"
MINORS = range(9, 15)  # Python 3.9 to 3.14
START_TEXT = "import _fairseq_ext_hook\n"


def version():
    """`__version__` of the package, read without importing it."""
    text = (HERE / "fairseq_ext" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE).group(1)


class BuildPy(build_py):
    """Puts the start-up file beside the packages, from where wheels take it."""

    def run(self):
        super().run()
        if not getattr(self, "editable_mode", False):
            self.mkpath(self.build_lib)
            Path(self.build_lib, START).write_text(START_TEXT, encoding="utf-8")

    def get_outputs(self, include_bytecode=1):
        return [*super().get_outputs(include_bytecode), str(Path(self.build_lib, START))]


def commands():
    """The commands of setuptools that are replaced here."""
    if editable_wheel is None:
        return {"build_py": BuildPy}

    class EditableWheel(editable_wheel):
        """Adds the start-up file to the finished editable wheel."""

        def run(self):
            super().run()
            (wheel,) = Path(self.dist_dir).glob("*.whl")
            add_to_wheel(wheel, START, START_TEXT.encode())

    return {"build_py": BuildPy, "editable_wheel": EditableWheel}


def add_to_wheel(wheel, name, content):
    """Add a file to a wheel, and its line to the wheel's RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    line = f"{name},sha256={digest},{len(content)}\n"
    with zipfile.ZipFile(wheel) as archive:
        entries = [(info, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in entries:
            if info.filename.endswith(".dist-info/RECORD"):
                data = line.encode() + data
            archive.writestr(info, data)
        archive.writestr(name, content)


setup(
    name="fairseq-ext",
    version=version(),
    description="fairseq 0.12.2 on today's Python and torch, and five papers as tested plugins",
    long_description=(HERE / "README.md").read_text(encoding="utf-8")
    if (HERE / "README.md").exists()
    else "",
    long_description_content_type="text/markdown",
    author="fairseq-ext authors",
    license="MIT",
    keywords=["fairseq", "machine translation", "sequence-to-sequence", "torch"],
    # without the licence, which newer versions of setuptools refuse beside `license`
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in MINORS),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    python_requires=">=3.9",
    packages=find_packages(include=["fairseq_ext", "fairseq_ext.*"]),
    # one plain line in a .pth file for editable installs, instead of an import hook of setuptools
    # that every Python process would pay for
    package_dir={"": "."},
    py_modules=["_fairseq_ext_hook", "_fairseq_ext_cli"],
    package_data={
        "fairseq_ext": [
            "py.typed",
            "*/README.md",
            "tools/installation/*.sha256",
            "tools/serving/page/*",
        ]
    },
    entry_points={"console_scripts": ["fairseq-ext = _fairseq_ext_cli:main"]},
    cmdclass=commands(),
    install_requires=[
        # what fairseq 0.12.2 imports. fairseq itself is installed with --no-deps: its own
        # requirements (omegaconf < 2.1) are refused by pip 24.1 and later. See docs/install.md
        "bitarray",
        "cffi",
        "cython",
        "hydra-core>=1.0.7",
        "numpy",
        "omegaconf>=2.0.6",
        "packaging",
        "regex",
        "sacrebleu>=2.0",
        "torch>=1.13",
        "tqdm",
    ],
    extras_require={
        "plot": ["matplotlib"],
        "bpe": ["sentencepiece"],
        # of packed models, which hold no pickles
        "pack": ["safetensors"],
        # of fairseq-ext serve
        "serve": ["starlette", "uvicorn"],
        # of docs/notebooks and its slow test; apart from "dev", because no other test needs it
        "notebook": ["ipykernel", "matplotlib", "nbclient", "safetensors", "sentencepiece"],
        # of fairseq's own tasks: waveforms and speech recognition; Moses, models of transformers
        "speech": ["editdistance", "soundfile"],
        "text": ["sacremoses", "transformers"],
        "ctranslate2": ["ctranslate2"],
        "linearise": ["nltk", "penman"],
        "recipes": ["gensim", "scikit-learn"],
        "docs": ["mkdocs-material", "mkdocstrings[python]"],
        # of tests/test_browser.py, which also needs an installed Chromium
        "browser": ["playwright"],
        # of tests/mutation; apart from "dev", because no other test needs it
        "mutation": ["cosmic-ray>=8.7"],
        "dev": [
            "ctranslate2",
            "matplotlib",
            "mkdocs-material",
            "mkdocstrings[python]",
            "mypy; python_version >= '3.10'",
            "nltk",
            "penman",
            "pytest",
            "pytest-timeout",
            "pytest-xdist",
            "ruff",
            "safetensors",
            "sentencepiece",
            "starlette",
            "uvicorn",
        ],
    },
)
