import pytest

from stoker._src.ops.random.bits import native


@pytest.fixture(params=["compiled", "python"])
def twin(request, monkeypatch):
    """Both implementations, one after the other; the compiled one only where it was built."""
    if request.param == "python":
        monkeypatch.setattr(native, "compiled", None)
    elif native.compiled is None:
        pytest.skip("the compiled module was not built")
    return request.param
