"""Images have the sizes of their files, and a dark twin where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from website.images import with_dark_images, with_image_sizes


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with two images."""
    (tmp_path / "images").mkdir()
    for name, width in (("one", 700), ("two", 350)):
        image = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="400"></svg>'
        (tmp_path / "images" / f"{name}.svg").write_text(image, encoding="utf-8")
    return tmp_path


def test_an_image_has_the_size_of_its_file_on_whichever_page_it_is(docs: Path) -> None:
    sized = with_image_sizes('<img alt="a" src="../images/one.svg#only-light" />', docs, "benchmarks/")
    assert sized == '<img alt="a" src="../images/one.svg#only-light" width="700" height="400" />'
    assert 'width="350"' in with_image_sizes('<img src="images/two.svg">', docs, "")


def test_all_images_but_the_first_wait_until_they_are_in_sight(docs: Path) -> None:
    html = '<img src="images/one.svg"><p>text</p><img src="images/two.svg">'
    first, second = with_image_sizes(html, docs, "").split("<p>")
    assert "loading" not in first
    assert 'loading="lazy"' in second


def test_an_image_without_a_size_is_an_error(docs: Path) -> None:
    (docs / "three.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"></svg>', encoding="utf-8")
    with pytest.raises(ValueError, match=r"three\.svg: an image without width and height"):
        with_image_sizes('<img src="three.svg">', docs, "")


def test_a_light_image_has_a_dark_twin() -> None:
    html = with_dark_images('<img alt="a" src="images/one-light.svg" /><img src="images/two.svg">')
    assert html == (
        '<img alt="a" src="images/one-light.svg#only-light" />\n'
        '<img alt="a" src="images/one-dark.svg#only-dark" /><img src="images/two.svg">'
    )
