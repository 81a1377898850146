"""`python -m stoker run`: what a program sees is what plain python would show it, with stoker as `tensorflow`."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*arguments, cwd, code=0):
    """Runs the command; what it printed on both streams."""
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "run", *map(str, arguments)],
        cwd=cwd, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def program(tmp_path):
    """Writes a file of the program's folder."""

    def write(text, name="prog.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_a_script_sees_its_arguments_its_folder_and_itself(program, tmp_path):
    """sys.argv, sys.path[0], __name__ and `import __main__` are as with plain python; unknown flags stay the script's."""
    program("VALUE = 41\n", "helper.py")
    path = program(
        "import sys, os, pickle, __main__\n"
        "import tensorflow as tf\n"
        "import tensorflow.compat.v1 as v1\n"
        "from tensorflow.python.framework import ops\n"
        "from tensorflow.python.ops import math_ops, array_ops, variable_scope as vs, gradients\n"
        "from tensorflow.python.client import timeline, device_lib\n"
        "import helper\n"
        "class Thing: pass\n"
        "assert __name__ == '__main__' and __main__.Thing is Thing\n"
        "assert type(pickle.loads(pickle.dumps(Thing()))) is Thing\n"
        "assert tf.__version__.startswith('1.15') and tf.VERSION == tf.__version__\n"
        "assert v1.Session is tf.Session and ops.Graph is tf.Graph and math_ops.reduce_sum is tf.reduce_sum\n"
        "assert vs.variable_scope is tf.variable_scope and gradients.gradients is tf.gradients  # modules, not functions\n"
        "assert not tf.executing_eagerly()\n"
        "assert tf.compat.v1.Session is tf.Session and tf.compat.v2.math.add is not None and tf.compat.as_bytes('a') == b'a'\n"
        "tf.compat.v1.disable_v2_behavior()\n"
        "print(sys.argv, os.path.realpath(sys.path[0]) == os.path.realpath(os.path.dirname(__file__)), helper.VALUE)\n"
        "print(tf.Session().run(tf.constant(helper.VALUE) + 1))\n"
    )
    out, _ = run(path, "--steps=3", "-m", "pos", cwd=tmp_path)
    assert out == f"{[str(path), '--steps=3', '-m', 'pos']} True 41\n42\n"


def test_flags_and_app_run(program, tmp_path):
    """tf.app.run parses flags, leaves the rest to main, and exits with what main returns."""
    path = program(
        "import tensorflow as tf\n"
        "tf.app.flags.DEFINE_integer('steps', 5, 'how many')\n"
        "tf.flags.DEFINE_string(flag_name='name', default_value='x', docstring='old spelling')\n"
        "print(tf.flags.FLAGS.name)\n"
        "def main(argv):\n"
        "    tf.logging.set_verbosity(tf.logging.INFO)\n"
        "    tf.logging.info('steps %d', tf.app.flags.FLAGS.steps)\n"
        "    print(argv[1:])\n"
        "    return 3\n"
        "tf.app.run()\n"
    )
    out, err = run(path, "--steps=7", "rest", cwd=tmp_path, code=3)
    assert out == "x\n['rest']\n" and "INFO:tensorflow:steps 7" in err


def test_exit_codes_and_tracebacks(program, tmp_path):
    """sys.exit passes through; an exception prints the user's frames only and exits with 1; no script is a usage error."""
    run(program("import sys\nsys.exit(9)\n", "nine.py"), cwd=tmp_path, code=9)
    path = program("import tensorflow as tf\n\ndef go():\n    tf.Session().run(tf.Variable(1.0, name='v'))\n\ngo()\n")
    _, err = run(path, cwd=tmp_path, code=1)
    assert err.startswith("Traceback (most recent call last):\n") and "line 4, in go" in err
    assert "FailedPreconditionError" in err and "runpy" not in err and "cli/run.py" not in err
    _, err = run(program("def broken(:\n", "syntax.py"), cwd=tmp_path, code=1)
    assert "SyntaxError" in err and "cli/run.py" not in err
    run("missing.py", cwd=tmp_path, code=2)
    run(cwd=tmp_path, code=2)


def test_modules_run_with_m(program, tmp_path):
    """-m MODULE finds a package in the current folder, with relative imports."""
    program("", "trainer/__init__.py")
    program("import tensorflow as tf\ndef build(): return tf.constant(5)\n", "trainer/model.py")
    program(
        "import sys\nimport tensorflow as tf\nfrom . import model\nprint(tf.Session().run(model.build()), sys.argv[1:], __name__)\n",
        "trainer/task.py",
    )
    out, _ = run("-m", "trainer.task", "--data=x", cwd=tmp_path)
    assert out == "5 ['--data=x'] __main__\n"


def test_main_is_as_with_plain_python(program, tmp_path):
    """__file__, __doc__, __spec__, __cached__ and the traceback's path are what python itself gives a script."""
    path = program(
        "import sys\nprint(__file__, __doc__, __spec__, __package__, __cached__, type(__loader__).__name__)\n"
        "print(sorted(name for name in dir() if not name.startswith('__')))\nraise KeyError('x')\n"
    )
    plain = subprocess.run([sys.executable, path.name], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    out, err = run(path.name, cwd=tmp_path, code=1)
    assert (out, err) == (plain.stdout, plain.stderr)


def test_folders_archives_and_what_is_no_module(program, tmp_path):
    """A folder or zip with a __main__ runs; -m refuses what python -m refuses, in its words."""
    text = "import sys, helper\nprint(__name__, __spec__.name, sys.argv[1:], sys.path[0])\n"
    program(text, "app/__main__.py")
    program("", "app/helper.py")
    assert run("app", "a", cwd=tmp_path)[0] == f"__main__ __main__ ['a'] {tmp_path / 'app'}\n"
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", text)
        archive.writestr("helper.py", "")
    assert run("app.zip", "b", cwd=tmp_path)[0] == f"__main__ __main__ ['b'] {tmp_path / 'app.zip'}\n"
    program("", "package/__init__.py")
    for name, message in (("nothing", "No module named nothing"), ("package", "cannot be directly executed")):
        assert message in run("-m", name, cwd=tmp_path, code=1)[1]


def test_child_processes_get_stoker_too(program, tmp_path):
    """Children of multiprocessing, forked or spawned, and of subprocess import tensorflow, with classes of __main__."""
    path = program(
        "import multiprocessing, subprocess, sys\n"
        "import tensorflow as tf\n"
        "class Thing:\n    value = 3\n"
        "def work(thing, queue):\n    queue.put((thing.value, tf.Session.__name__))\n"
        "if __name__ == '__main__':\n"
        "    for how in ('fork', 'spawn'):\n"
        "        context = multiprocessing.get_context(how)\n"
        "        queue = context.Queue()\n"
        "        process = context.Process(target=work, args=(Thing(), queue))\n"
        "        process.start()\n"
        "        print(how, queue.get(timeout=100))\n"
        "        process.join()\n"
        "    code = 'import tensorflow.compat.v1 as tf; print(tf.Session.__name__)'\n"
        "    print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd='/').stdout)\n"
    )
    assert run(path, cwd=tmp_path)[0] == "fork (3, 'Session')\nspawn (3, 'Session')\nSession\n\n"


def test_pytest_runs_tests_of_a_program(program, tmp_path):
    """-m pytest collects and runs tf.test.TestCase."""
    program(
        "import tensorflow as tf\nclass Some(tf.test.TestCase):\n    def testIt(self):\n"
        "        with self.test_session():\n            self.assertAllEqual(tf.constant([1]).eval(), [1])\n",
        "test_some.py",
    )
    assert "1 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_some.py", cwd=tmp_path)[0]


def test_help_shows_the_flags_of_the_program(program, tmp_path):
    """--help lists every flag that the script defines, with its kind and default; a bad value exits with 1."""
    path = program(
        "import tensorflow as tf\ntf.flags.DEFINE_integer('steps', 5, 'how many')\n"
        "tf.flags.DEFINE_float('rate', 0.5, 'how fast')\ntf.app.run(lambda _: None)\n"
    )
    out, _ = run(path, "--help", cwd=tmp_path, code=1)
    assert "--steps: how many\n    (default: '5')\n    (an integer)" in out and "--rate: how fast" in out
    assert "steps" in run(path, "--steps=x", cwd=tmp_path, code=1)[1]


def test_the_names_of_2x(program, tmp_path):
    """--api v2 gives eager execution and the 2.x names; compat.v1 is still there."""
    path = program(
        "import tensorflow as tf\n"
        "assert tf.executing_eagerly() and tf.__version__.startswith('2.') and not hasattr(tf, 'placeholder')\n"
        "with tf.compat.v1.Graph().as_default():\n"
        "    assert not tf.executing_eagerly()\n"
        "print((tf.constant([1, 2]) * 3).numpy().tolist())\n"
    )
    out, _ = run("--api", "v2", path, cwd=tmp_path)
    assert out == "[3, 6]\n"


def test_what_is_not_there_says_so(program, tmp_path):
    """A name that stoker lacks is an AttributeError or ImportError that names it."""
    path = program(
        "import tensorflow as tf\n"
        "try:\n    tf.no_such_name\n"
        "except AttributeError as error:\n    print('no_such_name' in str(error))\n"
        "try:\n    import tensorflow.no_such_module\n"
        "except ImportError as error:\n    print('no_such_module' in str(error))\n"
    )
    assert run(path, cwd=tmp_path)[0] == "True\nTrue\n"


def test_children_of_another_environment_get_their_own_tensorflow(program, tmp_path):
    """A Python of another environment imports the TensorFlow that is installed there, or says that there is none."""
    other = tmp_path / "other"
    venv.create(other, symlinks=True)
    python = other / "bin" / "python"
    path = program(
        "import subprocess\n"
        "import tensorflow as tf\n"
        f"done = subprocess.run([{str(python)!r}, '-c', 'import tensorflow.inner; print(tensorflow.REAL)'],\n"
        "    capture_output=True, text=True)\n"
        "print(done.stdout.strip(), \"No module named 'tensorflow'\" in done.stderr)\n"
    )
    assert run(path, cwd=tmp_path)[0] == " True\n"
    package = next(other.glob("lib/*/site-packages")) / "tensorflow"
    package.mkdir()
    (package / "__init__.py").write_text("REAL = 'the real one'\n")
    (package / "inner.py").write_text("")
    assert run(path, cwd=tmp_path)[0] == "the real one False\n"


def test_a_broken_pipe_of_the_program_is_its_own(program, tmp_path):
    """A BrokenPipeError that the program does not catch ends it with a traceback and status 1, as with plain python."""
    path = program("raise BrokenPipeError('the reader of the samples went away')\n")
    _, err = run(path, cwd=tmp_path, code=1)
    assert "prog.py" in err and "BrokenPipeError: the reader of the samples went away" in err
