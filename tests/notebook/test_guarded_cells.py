# SPDX-License-Identifier: Apache-2.0
"""%%guard in a real kernel: a guarded cell looks and works like any other."""

import itertools

import pytest

from kernels import PLAIN, Kernel

PNG = "iVBORw0KGgo"  # how a picture begins


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """One kernel for all of this file: what it keeps for the next cell is a part of what is tested."""
    if PLAIN is None:
        pytest.skip("there is no .venv: run make setup")
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "helper.py").write_text("def answer(): return 'one'\n")
    with Kernel(PLAIN, folder, env={"LEADLINE_FLIGHTS": str(folder / "flights")}) as kernel:
        loaded = kernel.run("%load_ext leadline\nimport leadline, os, sys, time\nnumbers, k = [1, 2, 3], 4")
        assert loaded.error is None, loaded
        yield kernel


def run(notebook, code):
    result = notebook.run(code, timeout=120)
    assert not result.died, result
    return result


def value(notebook, code):
    result = run(notebook, code)
    assert result.error is None, result
    return result.value


@pytest.mark.parametrize("options", ["--out p --out q", "--out p,q", "--out p, q", "--memory 2GB --out p,q  # why not"])
def test_every_out_comes_back(notebook, options):
    run(notebook, "p = q = None")
    assert run(notebook, f"%%guard {options}\np, q = 1, 'two'").error is None
    assert value(notebook, "p, q") == "(1, 'two')"


@pytest.mark.parametrize(
    ("cell", "out", "shown"),
    [
        ("%time sum(range(10))", "Wall time", "45"),
        ("%%time\nsum(range(10))", "Wall time", "45"),
        ("!echo from a shell", "from a shell", None),
        ("files = !ls helper.py\nprint(files)", "['helper.py']\n", None),
        ("import asyncio\nawait asyncio.sleep(0.01)\nprint('slept')\n7", "slept\n", "7"),
        ("%matplotlib inline\n8", "", "8"),
        ("%%bash\necho bash", "bash\n", None),
        ("1;", "", None),
        ("(i for i in range(3))", "", "<generator object"),
    ],
)
def test_magics_shell_commands_and_await(notebook, cell, out, shown):
    result = run(notebook, f"%%guard\n{cell}")
    assert result.error is None, result
    assert out in result.stdout
    assert result.value is None if shown is None else result.value.startswith(shown)


def test_an_output_that_cannot_travel_is_named(notebook):
    result = run(notebook, "%%guard --out fine,lazy\nfine = 1\nlazy = (i for i in range(3))")
    assert result.error == "InvalidArgumentError" and "--out lazy, of type generator, cannot be sent" in result.message


def test_guarded_cells_can_be_nested(notebook):
    assert run(notebook, "%%guard\nget_ipython().run_cell_magic('guard', '', 'print(3)')").stdout == "3\n"


def test_a_magic_that_the_notebook_defines(notebook):
    run(
        notebook, "from IPython.core.magic import register_line_magic\n@register_line_magic\ndef twice(x): return 2 * x"
    )
    assert value(notebook, "%%guard\n%twice ab") == "'abab'"


def test_figures_arrive_as_pictures_in_their_place(notebook):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = run(notebook, "%%guard\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nprint('after')")
    assert result.error is None, result
    assert [data["image/png"].startswith(PNG) for data in result.displays] == [True]
    # Printed text may come in several messages. Of the first figure of an environment matplotlib says, on standard error,
    # that it looks for fonts.
    kinds = [kind for _, kind, what in result.messages if kind == "display_data" or what.get("name") == "stdout"]
    assert [kind for kind, _ in itertools.groupby(kinds)] == ["display_data", "stream"]
    # Without show() it comes at the end of the cell, after its value.
    result = run(notebook, "%%guard\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])")
    assert ["image/png" in data for data in result.displays] == [False, True]
    assert "Line2D" in result.displays[0]["text/plain"]


def test_html_arrives_as_html(notebook):
    result = run(
        notebook,
        "%%guard\nfrom IPython.display import HTML, display\nprint('before')\ndisplay(HTML('<b>1</b>'))\nprint('after')\n"
        "class Table:\n    def _repr_html_(self): return '<table></table>'\nTable()",
    )
    assert result.error is None, result
    assert result.html == ["<b>1</b>", "<table></table>"]
    texts = [
        content.get("text") or "html" for _, kind, content in result.messages if kind in ("stream", "display_data")
    ]
    assert "".join(texts).startswith("before\nhtmlafter\n")


def test_displays_of_guarded_functions_arrive_too(notebook):
    code = "def show():\n    from IPython.display import HTML, display\n    display(HTML('<i>x</i>'))\n    return 3\n"
    result = run(notebook, code + "leadline.guard(show)")
    assert result.html == ["<i>x</i>"] and result.value == "3", result


def test_a_pool_over_a_function_of_the_cell(notebook):
    cell = "from multiprocessing import Pool\ndef square(x): return x * x\nwith Pool(2) as pool: r = pool.map(square, range(4))"
    assert value(notebook, f"%%guard\n{cell}\nr") == "[0, 1, 4, 9]"
    code = "def plus(x): return x + 1\ndef work():\n    from multiprocessing import Pool\n    with Pool(2) as pool: return pool.map(plus, [1, 2])\n"
    assert value(notebook, code + "leadline.guard(work)") == "[2, 3]"


def test_a_name_of_the_notebook_says_how_it_gets_there(notebook):
    result = run(notebook, "%%guard\nprint(sum(numbers) + k)")
    assert result.error == "NameError" and "%%guard --in numbers,k" in result.message
    result = run(notebook, "%%guard --in numbers\nprint(sum(numbers) + k)")
    assert result.error == "NameError" and "--in numbers,k" in result.message
    result = run(notebook, "%%guard\nnobody_has_this")
    assert result.error == "NameError" and "--in" not in result.message


def test_names_that_vanish_are_told(notebook):
    result = run(notebook, "%%guard\nimport os\nmodel = 1\ndef f(): pass\nfor i in range(3): pass")
    assert result.error is None
    assert (
        result.stderr
        == "leadline: model, f were set in the guarded cell and ended with it; --out model,f brings them back\n"
    )
    assert run(notebook, "%%guard --out model\nmodel = 1\nhelper = 2").stderr == ""
    assert run(notebook, "%%guard\nprint(1)").stderr == ""


def test_the_current_code_runs_after_a_reload_and_under_autoreload(notebook):
    both = "helper.answer(), leadline.guard(helper.answer)"
    assert value(notebook, f"import helper, importlib\n{both}") == "('one', 'one')"
    write = "open('helper.py', 'w').write('def answer(): return \\'{}\\'\\n')\n"
    assert value(notebook, f"{write.format('second')}importlib.reload(helper)\n{both}") == "('second', 'second')"
    run(notebook, f"%load_ext autoreload\n%autoreload 2\n{write.format('the third')}")
    assert value(notebook, both) == "('the third', 'the third')"
    assert value(notebook, "%%guard\nimport helper\nhelper.answer()") == "'the third'"
    run(notebook, f"%autoreload 0\n{write.format('and the fourth')}")
    assert value(notebook, "%%guard\nimport helper\nhelper.answer()") == "'and the fourth'"


def test_what_a_cell_changes_of_its_process_is_gone(notebook):
    assert (
        run(
            notebook, "%%guard\nimport os, sys\nos.environ['LEFT'] = '1'; os.chdir('/')\nx = 1\nsys.stdout = None"
        ).error
        is None
    )
    result = run(
        notebook, "%%guard\nimport os\nprint(os.environ.get('LEFT'), os.path.exists('helper.py'), 'x' in dir())"
    )
    assert result.stdout == "None True False\n", result


def test_errors_look_like_errors_of_the_cell(notebook):
    result = run(notebook, "%%guard\ndef f(x):\n    return 1 / x\nf(0)")
    assert result.error == "ZeroDivisionError"
    assert "return 1 / x" in result.traceback and "IPython/core" not in result.traceback
    result = run(notebook, "%%guard\nx = (")
    assert result.error == "SyntaxError"
    result = run(notebook, "%%guard\nimport sys\nsys.exit(2)")
    assert result.error == "GuardError" and "code 2" in result.message and result.stderr == ""
    assert notebook.answers()
