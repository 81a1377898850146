"""Expressions over `gfile`, each evaluated in a fresh directory R, under TensorFlow and under stoker."""

import os
import shutil
import tempfile

CASES = r"""
exists(R)
exists(R + '/no')
exists('')
exists(b(R))
exists(pathlib.Path(R))
exists(R + '/a.txt/below')
exists('nosuchscheme://x')
isdir(R)
isdir(R + '/a.txt')
isdir(R + '/no')
isdir('')
listdir(R)
listdir(R + '/no')
listdir(R + '/a.txt')
listdir(b(R))
listdir('')
glob(R + '/*.txt')
glob(b(R) + b'/*.txt')
glob([R + '/b*', R + '/a*'])
glob((R + '/b*', R + '/a*'))
glob(R + '/no*')
glob(R + '/*/*')
glob(R + '/d*/c.txt')
glob(R + '/**/c.txt')
glob(R + '/**')
glob(R + '/[ab].txt')
glob(R + '/[!a].txt')
glob(R + '/[^a].txt')
glob(R + '/?.txt')
glob(R + '/a.txt')
glob(R + '/d')
glob(R + '/d/')
glob(R + '/d/*')
glob(R)
glob('')
glob([])
glob(R + '/[')
glob(R + '/*')
glob(R + '/.*')
glob(R + '/nodir/*.txt')
glob(pathlib.Path(R) / '*.txt')
mkdir(R + '/new')
mkdir(R + '/d')
mkdir(R + '/x/y')
mkdir(R + '/a.txt')
mkdir(R + '/a.txt/x')
mkdir('')
makedirs(R + '/x/y/z')
[makedirs(R + '/x/y/z'), exists(R + '/x/y/z')]
makedirs(R + '/d')
makedirs(R + '/a.txt')
makedirs(R + '/a.txt/x')
makedirs('')
remove(R + '/a.txt')
remove(R + '/no')
remove(R + '/d')
remove(R + '/empty')
remove('')
rename(R + '/a.txt', R + '/n.txt')
rename(R + '/a.txt', R + '/b.txt')
rename(R + '/a.txt', R + '/b.txt', overwrite=True)
[rename(R + '/a.txt', R + '/b.txt', True), read(R + '/b.txt'), exists(R + '/a.txt')]
rename(R + '/no', R + '/b.txt')
rename(R + '/no', R + '/n.txt')
rename(R + '/d', R + '/e')
rename(R + '/d', R + '/empty')
rename(R + '/d', R + '/empty', True)
rename(R + '/empty', R + '/d', True)
rename(R + '/a.txt', R + '/d', True)
rename(R + '/a.txt', R + '/x/y')
rename(R + '/a.txt', R + '/a.txt', True)
copy(R + '/a.txt', R + '/n.txt')
[copy(R + '/a.txt', R + '/n.txt'), read(R + '/n.txt'), exists(R + '/a.txt')]
copy(R + '/a.txt', R + '/b.txt')
copy(R + '/a.txt', R + '/b.txt', overwrite=True)
copy(R + '/no', R + '/n.txt')
copy(R + '/no', R + '/b.txt')
copy(R + '/d', R + '/e')
copy(R + '/a.txt', R + '/d')
copy(R + '/a.txt', R + '/d', True)
copy(R + '/a.txt', R + '/x/y')
copy(R + '/a.txt', R + '/a.txt', True)
[copy(R + '/a.txt', R + '/a.txt', True), read(R + '/a.txt')]
rmtree(R + '/d')
[rmtree(R + '/d'), exists(R + '/d')]
rmtree(R + '/no')
rmtree(R + '/a.txt')
[rmtree(R + '/a.txt'), exists(R + '/a.txt')]
rmtree('')
stat(R + '/a.txt').length
stat(R + '/d').is_directory
stat(R + '/a.txt').is_directory
stat(R + '/a.txt').mtime_nsec == os.stat(R + '/a.txt').st_mtime_ns
type(stat(R + '/a.txt').mtime_nsec).__name__
stat(R + '/no')
stat(R + '/a.txt/x')
stat('')
type(stat(R + '/a.txt')).__name__
ordered(walk(R))
ordered(walk(R, topdown=False))
list(walk(R + '/no'))
list(walk(R + '/no', onerror=note))
[list(walk(R + '/no', onerror=note)), NOTES]
list(walk(R + '/a.txt'))
list(walk(R + '/d'))
list(walk(R + '/d/'))
list(walk(b(R) + b'/d'))
join('a', 'b')
join('a', '/b')
join('a/', 'b')
join('a')
join('', 'b')
join('a', '')
join('a', 'b', 'c')
join(b'a', b'b')
join('gs://x', 'y')
join('memory://x', '/y')
join('memory://x/', 'y')
join(pathlib.Path('a'), 'b')
GFile(R + '/a.txt').read()
GFile(R + '/a.txt', 'rb').read()
GFile(R + '/no')
GFile(R + '/no').read()
GFile(R + '/no').size()
GFile(R + '/no').close()
GFile(R + '/d').read()
GFile(R + '/a.txt', 'x')
GFile(R + '/a.txt', 'q')
GFile(R + '/a.txt', 'rw')
GFile(R + '/a.txt', '')
GFile(R + '/a.txt', 'U')
GFile(R + '/a.txt', 'rt').read()
GFile(R + '/a.txt', 'br').read()
GFile(R + '/a.txt', 'w').read()
GFile(R + '/a.txt', 'r').write('x')
GFile(R + '/a.txt', 'a').read()
GFile(R + '/no/n.txt', 'w').write('x')
GFile(R + '/d', 'w').write('x')
GFile(R + '/a.txt', 'r').size()
GFile(R + '/a.txt', 'r').name[-5:]
GFile(R + '/a.txt', 'r').mode
GFile(R + '/a.txt', 'rb').mode
GFile(R + '/a.txt').readline()
GFile(R + '/a.txt', 'rb').readline()
GFile(R + '/a.txt').readlines()
list(GFile(R + '/a.txt'))
list(GFile(R + '/a.txt', 'rb'))
next(GFile(R + '/a.txt'))
next(GFile(R + '/empty.txt'))
GFile(R + '/empty.txt').readline()
GFile(R + '/empty.txt').read()
GFile(R + '/empty.txt').readlines()
GFile(R + '/crlf.txt').readlines()
GFile(R + '/crlf.txt').read()
GFile(R + '/utf.txt').read()
GFile(R + '/utf.txt').read(2)
GFile(R + '/utf.txt').read(1)
GFile(R + '/utf.txt', 'rb').read(3)
GFile(R + '/latin.txt').read()
GFile(R + '/latin.txt').readline()
GFile(R + '/a.txt').read(3)
GFile(R + '/a.txt').read(0)
GFile(R + '/a.txt').read(1000)
GFile(R + '/a.txt').read(-5)
steps(GFile(R + '/a.txt'), 'read(2)', 'tell()', 'seek(1)', 'tell()', 'read(3)', 'seek(-2, 2)', 'read()', 'seek(-3, 1)')
steps(GFile(R + '/a.txt'), 'seek(100)', 'tell()', 'read()')
steps(GFile(R + '/a.txt'), 'seek(-1)')
steps(GFile(R + '/a.txt'), 'seek(position=2)', 'tell()', 'read(1)')
steps(GFile(R + '/a.txt'), 'seek()')
steps(GFile(R + '/a.txt'), 'seek(0, 5)')
steps(GFile(R + '/a.txt'), 'tell()')
steps(GFile(R + '/a.txt'), 'seekable()')
steps(GFile(R + '/a.txt'), 'read()', 'read()', 'readline()', 'readlines()')
steps(GFile(R + '/a.txt'), 'readline()', 'tell()', 'read(2)', 'tell()')
steps(GFile(R + '/a.txt'), 'read(1)', 'close()', 'read(1)', 'tell()')
steps(GFile(R + '/a.txt'), 'close()', 'close()')
steps(GFile(R + '/a.txt'), 'flush()')
steps(GFile(R + '/w.txt', 'w'), 'tell()', 'write("abc")', 'tell()', 'flush()', 'size()', 'close()', 'size()')
steps(GFile(R + '/w.txt', 'w'), 'write(b"abc")', 'close()')
steps(GFile(R + '/w.txt', 'wb'), 'write("abc")', 'close()')
steps(GFile(R + '/w.txt', 'wb'), 'write(bytearray(b"abc"))')
steps(GFile(R + '/w.txt', 'w'), 'write(5)')
steps(GFile(R + '/w.txt', 'w'), 'write(None)')
steps(GFile(R + '/w.txt', 'w'), 'write("\u00e9")', 'tell()', 'close()', 'size()')
steps(GFile(R + '/w.txt', 'w'), 'seek(0)')
steps(GFile(R + '/w.txt', 'w'), 'readline()')
steps(GFile(R + '/w.txt', 'w'), 'readlines()')
steps(GFile(R + '/w.txt', 'w'), 'close()', 'size()')
steps(GFile(R + '/w.txt', 'w'), 'flush()', 'size()')
steps(GFile(R + '/a.txt', 'a'), 'write("xyz")', 'tell()', 'close()', 'size()')
steps(GFile(R + '/a.txt', 'w+'), 'write("xyz")', 'flush()', 'read()', 'close()', 'size()')
steps(GFile(R + '/a.txt', 'r+'), 'read(2)', 'write("x")', 'flush()', 'read()', 'close()')
steps(GFile(R + '/a.txt', 'a+'), 'write("xyz")', 'flush()', 'read()', 'close()')
[put(R + '/w.txt', 'w', 'abc'), read(R + '/w.txt')]
[put(R + '/a.txt', 'a', 'abc'), read(R + '/a.txt')]
[put(R + '/a.txt', 'w', 'abc'), read(R + '/a.txt')]
[put(R + '/a.txt', 'w+', 'abc'), read(R + '/a.txt')]
[put(R + '/a.txt', 'r+', 'X'), read(R + '/a.txt')]
[GFile(R + '/a.txt', 'w') and None, read(R + '/a.txt')]
[GFile(R + '/w.txt', 'w').close(), exists(R + '/w.txt')]
GFile(b(R) + b'/a.txt').read()
GFile(pathlib.Path(R) / 'a.txt').read()
GFile(pathlib.Path(R) / 'a.txt').name[-5:]
GFile(5).read()
GFile(None).read()
GFile('file://' + R + '/a.txt').read(3)
exists('file://' + R + '/a.txt')
listdir('file://' + R + '/d')
glob('file://' + R + '/a*')
stat(R + '/locked.txt').length
v1.Glob(R + '/*.txt')
v1.Exists(R)
v1.ListDirectory(R + '/no')
v1.MakeDirs(R + '/x/y')
v1.MkDir(R + '/d')
v1.Stat(R + '/a.txt').length
v1.IsDirectory(R)
v1.Remove(R + '/no')
v1.Rename(R + '/a.txt', R + '/b.txt')
v1.Copy(R + '/a.txt', R + '/b.txt')
v1.DeleteRecursively(R + '/no')
ordered(v1.Walk(R))
ordered(v1.Walk(R, in_order=False))
list(v1.Walk(R + '/no'))
v1.FastGFile(R + '/a.txt').read()
v1.GFile(R + '/a.txt', 'rb').read(2)
v1.Open(R + '/a.txt').read(2)
"""


def fill(root):
    os.makedirs(root + "/d/sub")
    os.makedirs(root + "/empty")
    for name, content in {
        "a.txt": b"alpha\nbeta\ngamma",
        "b.txt": b"bravo\n",
        "empty.txt": b"",
        "crlf.txt": b"one\r\ntwo\r\n",
        "utf.txt": "\u00e9\u00fc\u4e2d".encode(),
        "latin.txt": b"caf\xe9\n",
        "d/c.txt": b"charlie",
        "d/sub/x.txt": b"",
        ".hidden": b"",
    }.items():
        with open(os.path.join(root, name), "wb") as sink:
            sink.write(content)


def outcomes(gfile, v1):
    """[[expression, result or None, error class or None, message or None], ...] under gfile modules of 2.x and 1.x."""
    import pathlib

    def steps(handle, *calls):
        results = []
        for call in calls:
            try:
                results.append(eval("handle." + call, {"handle": handle}))
            except Exception as error:
                results.append(type(error).__name__)
        return results

    def read(path):
        with open(path, "rb") as source:
            return source.read()

    def put(path, mode, text):
        with gfile.GFile(path, mode) as sink:
            sink.write(text)

    def ordered(triples):
        return [(top, sorted(dirs), sorted(files)) for top, dirs, files in sorted_siblings(triples)]

    def sorted_siblings(triples):
        # The order of siblings is the file system's; only parents before (or after) children is promised.
        triples = list(triples)
        if triples and triples[0][0] == min(top for top, _, _ in triples):
            return sorted(triples)
        return sorted(triples, reverse=True)

    names = dict(
        {name: getattr(gfile, name) for name in dir(gfile) if not name.startswith("_")},
        v1=v1,
        steps=steps,
        read=read,
        put=put,
        ordered=ordered,
        os=os,
        pathlib=pathlib,
        b=lambda text: text.encode(),
    )
    rows = []
    for line in CASES.strip().splitlines():
        root = tempfile.mkdtemp()
        notes = []
        try:
            fill(root)
            scope = dict(names, R=root, NOTES=notes, note=lambda error, notes=notes: notes.append(type(error).__name__))
            try:
                value = eval(line, scope)
                if line.startswith(("glob", "listdir", "v1.Glob", "v1.ListD")) and isinstance(value, list):
                    value = sorted(value)
                row = [line, repr(value), None, None]
            except Exception as error:
                row = [line, None, type(error).__name__, getattr(error, "message", None) or str(error)]
        finally:
            shutil.rmtree(root, ignore_errors=True)
        rows.append([None if cell is None else cell.replace(root, "R") for cell in row])
    return rows
