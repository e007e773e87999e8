"""Test the import of arbitrary tables as campaigns, and the error messages for invalid tables."""

from __future__ import annotations

import pytest

from wattwire.imports import table
from wattwire.model.errors import UsageError

PLAIN = """lang,size,day,power
c,1,mon,1.5
c,1,tue,1.7
py,1,mon,2.5
py,1,tue,
"""


def request(
    *factors: str, responses: str = "power:W", block: str = "", run: str = ""
) -> table.TableRequest:
    units = tuple(table.response(text) for text in responses.split())
    return table.TableRequest(units, factors or ("lang",), block or None, run or None)


def read(tmp_path, text: str | bytes, wanted: table.TableRequest | None = None):
    path = tmp_path / "mine.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return table.read(path, wanted or request())


def test_a_row_is_a_run(tmp_path) -> None:
    imported = read(tmp_path, PLAIN, request("lang", block="day"))
    assert imported.runs["power"].to_list() == [1.5, 1.7, 2.5, None]
    assert imported.runs["block"].to_list() == [1, 2, 1, 2]
    assert imported.runs["position"].to_list() == [1, 1, 2, 2]
    assert imported.runs["verdict"].to_list() == ["valid", "valid", "valid", "invalid"]
    assert imported.study["factors"] == {"lang": ["c", "py"]}
    assert imported.columns["power"]["unit"] == "W"
    assert imported.provenance["how"][0] == "power, line 2"
    assert [(one.path, one.why) for one in imported.set_aside] == [
        ("mine.csv, line 5", "no response in this row")
    ]


def test_rows_of_one_run_are_averaged(tmp_path) -> None:
    text = "id,lang,power\na,c,1\na,c,3\nb,c,5\nc,py,7\n"
    imported = read(tmp_path, text, request("lang", run="id"))
    assert imported.runs["run"].to_list() == ["a", "b", "c"]
    assert imported.runs["power"].to_list() == [2.0, 5.0, 7.0]
    assert imported.provenance["how"][0] == "power, lines 2 to 3, mean"
    assert imported.provenance["rows_used"].to_list() == [2, 1, 1]


def test_levels_that_are_numbers_sort_as_numbers(tmp_path) -> None:
    imported = read(tmp_path, "size,p\n10,1\n9,1\n10,2\n", request("size", responses="p"))
    assert imported.study["factors"] == {"size": [9, 10]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_quotes_and_a_byte_order_mark_are_read(tmp_path, delimiter: str) -> None:
    lines = ['"lang"', "power"], ['"a b"', "1"], ['"a b"', "2"]
    text = "\ufeff" + "\r\n".join(delimiter.join(line) for line in lines)
    assert read(tmp_path, text).study["factors"] == {"lang": ["a b"]}


def test_a_line_break_inside_quotes_is_part_of_a_level(tmp_path) -> None:
    imported = read(tmp_path, 'lang,power\n"a\nb",1\n"a\nb",2\n')
    assert imported.study["factors"] == {"lang": ["a\nb"]}
    assert imported.runs["run"].to_list() == ["row-3", "row-5"], "where each row ends"


def test_a_response_with_a_dot_is_no_node_s(tmp_path) -> None:
    imported = read(tmp_path, "lang,p.q\nc,1\nc,2\n", request("lang", responses="p.q"))
    assert imported.runs["p_q"].to_list() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "wanted", "words"),
    [
        ("", request(), "the file is empty"),
        ("lang,power\n", request(), "a header but no rows"),
        (PLAIN, request("langg"), 'unknown column "langg"; known: day, lang, power, size.*"lang"'),
        (PLAIN, request("lang", responses="pow"), "--response: unknown column"),
        (PLAIN, request("lang", block="week"), "--block: unknown column"),
        (PLAIN.replace("1.7", "fast"), request(), 'line 3: power: found "fast"; allowed: a number'),
        (PLAIN.replace("1.7", "inf"), request(), "line 3: power: found .inf.*a finite number"),
        (PLAIN.replace(",", ";").replace(".", ","), request(), 'found "1,5".*with decimal points'),
        (PLAIN.replace("c,1,tue", ",1,tue"), request(), "line 3: lang: found nothing"),
        (PLAIN.replace("mon,1.5", "mon"), request(), "line 2: found 3 cells; the header has 4"),
        ("lang,lang\n1,2\n", request(), 'two columns "lang"'),
        (PLAIN, request("lang", "size", "day"), "no repeated runs, because each combination"),
        (PLAIN, request("lang", "lang"), "column lang: named twice, in --factor and in --factor"),
        (PLAIN, request("lang", run="day"), "line 4: found lang py for run mon; line 2 has c"),
        (b"lang,power\n\xff\xfe,1\n", request(), "not UTF-8 text"),
        (
            f"lang,power\nc,{'1' * 200_000}\n",
            request(),
            "line 2: cannot be read as CSV .field larger",
        ),
        (
            PLAIN,
            table.TableRequest((), ("lang",)),
            "--response is missing; name one of the file.s columns: lang, size",
        ),
        (PLAIN, table.TableRequest((("power", ""),), ()), "--factor is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, wanted, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, text, wanted)


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(UsageError, match="this file does not exist"):
        table.read(tmp_path / "no.csv", request())
    with pytest.raises(UsageError, match="a folder; name a CSV file"):
        table.read(tmp_path, request())


def test_an_empty_response_name_is_refused() -> None:
    with pytest.raises(UsageError, match="COL or COL:UNIT"):
        table.response(":W")


@pytest.mark.parametrize("number", ["1_000", "\u0661", "\uff11", "0x10", "1e", ".", "1 000"])
def test_what_only_python_takes_for_a_number_is_refused(tmp_path, number: str) -> None:
    with pytest.raises(UsageError, match="line 3: power: found .*allowed: a number"):
        read(tmp_path, PLAIN.replace("1.7", number))


@pytest.mark.parametrize("number", ["1e3", "+1.5", "-.5", "5.", "1E-3"])
def test_numbers_in_their_usual_forms_are_read(tmp_path, number: str) -> None:
    imported = read(tmp_path, PLAIN.replace("1.7", number))
    assert imported.runs["power"][1] == float(number)


def test_levels_that_become_one_are_told(tmp_path) -> None:
    imported = read(tmp_path, "size,p\n1,1\n1.0,1\n1,2\n2,2\n", request("size", responses="p"))
    assert imported.study["factors"] == {"size": [1.0, 2.0]}
    (remark,) = imported.remarks
    assert "one level: 1, 1.0." in remark.text
    assert not read(tmp_path, PLAIN).remarks


def test_levels_that_are_no_finite_numbers_stay_words(tmp_path) -> None:
    imported = read(tmp_path, "size,p\n1,1\ninf,1\n1,2\ninf,3\n", request("size", responses="p"))
    assert imported.study["factors"] == {"size": ["1", "inf"]}


def test_missing_and_negative_values_are_named_with_their_lines(tmp_path) -> None:
    text = "lang,power,t\nc,1.5,1\nc,nan,2\npy,-2,3\npy,-0.0,\n"
    imported = read(tmp_path, text, request("lang", responses="power:W t:s"))
    found = {one.title: one.text for one in imported.remarks}
    assert set(found) == {"Rows without power", "Negative values of power", "Rows without t"}
    expected = "mine.csv has no number for power in 1 of 4 rows (line 3)."
    assert expected in found["Rows without power"]
    assert "(line 4). Ratios are undefined" in found["Negative values of power"]
    assert "(line 5)" in found["Rows without t"]
