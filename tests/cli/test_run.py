"""`python -m stoker run`: what a program sees is what plain python would show it, with stoker as `tensorflow`."""

from __future__ import annotations

import subprocess
import sys
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
