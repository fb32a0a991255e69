"""Takes the pictures of docs/images from a running demo, as a person with a browser would see it.

Uses the Airflow that runs in the home folder, or starts one there and ends it. For pictures of a run it uses the last
run of the DAG if it fits, or makes one; those of connection forms need the providers installed, and save nothing.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Error, FloatRect, Locator, Page, expect, sync_playwright

from adk_airflow.local.errors import StandaloneError
from adk_airflow.local.run import watch_run
from adk_airflow.local.server import StandaloneAirflow

DAG_ID = "batch_retrieval"
MAPPED_TASK = "retrieve.run"
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Pixels of the picture per pixel of the page: text stays sharp on the screens of today.
SCALE = 1.5
# A graph that is left to right is nine times as wide as high: no page can show its text.
DIRECTION = "Top to Bottom"
FINISHED = re.compile("success|skipped")
MAPPED_ROWS = 10
# What a person could type into the form: a picture of empty fields says little.
FORM = {
    "element_documents_dir": "/srv/manuals",
}
GEMINI_FORM = {"connection_id": "google_genai_default", "password": "not-a-real-key-0123456789"}
VERTEX_FORM = {
    "connection_id": "google_genai_vertex_default",
    "element_project": "my-project",
    "element_agent_engine": "projects/my-project/locations/us-central1/reasoningEngines/1234567890",
}
TOOLBOX_FORM = {"connection_id": "mcp_toolbox_default", "host": "http://toolbox.internal:5000"}
FORM_QUESTIONS = "How do I reset the controller?\nWhich fuse protects the pump?"


@dataclass(frozen=True)
class Shot:
    """What a picture is taken of.

    Attributes:
        page: logged in, of the right size.
        ui: address of the UI.
        run_id: a successful run of the DAG; empty for pictures that need none.
        tasks: the ids of all the DAG's tasks.
    """

    page: Page
    ui: str
    run_id: str
    tasks: list[str]

    @property
    def url(self) -> str:
        """Address of the DAG in the UI."""
        return f"{self.ui}/dags/{DAG_ID}"


def take_graph(shot: Shot) -> bytes:
    """The graph of the run, the task groups open."""
    page = shot.page
    page.goto(f"{shot.url}/runs/{shot.run_id}")
    page.get_by_role("button", name="Show Graph").click()
    page.get_by_role("button", name="Expand all task groups").click()
    page.get_by_role("button", name="Options").click()
    page.get_by_role("combobox", name="Graph Direction").click()
    page.get_by_role("option", name=DIRECTION).click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Collapse Details Panel").click()
    for task_id in shot.tasks:
        expect(page.get_by_test_id(f"rf__node-{task_id}")).to_contain_text(FINISHED)
    _settle(page)
    page.get_by_role("button", name="Fit View").click()
    _settle(page)
    _leave_alone(page)
    # The small map would lie over the lower right part of the graph.
    return page.screenshot(style=".react-flow__minimap { display: none; }")


def take_mapped(shot: Shot) -> bytes:
    """The list of the mapped task instances with their labels, in the order of their start."""
    page = shot.page
    page.goto(f"{shot.url}/runs/{shot.run_id}/tasks/{MAPPED_TASK}/mapped?sort=start_date")
    page.get_by_role("button", name="Filter table columns").click()
    for column in ("Try Number", "Operator", "Duration"):
        page.get_by_role("menuitem", name=column).click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    rows = page.get_by_role("row")
    last = rows.nth(MAPPED_ROWS)
    last.wait_for()
    _leave_alone(page)
    panel, end = _box(page.locator("[data-panel]").last), _box(last)
    height = end["y"] + end["height"] - panel["y"]
    # The handle between the two panels reaches into this one.
    handle = "[data-panel-group] button[aria-label^=Collapse]"
    return page.screenshot(clip={**panel, "height": height}, style=f"{handle} {{ display: none; }}")


def take_form(shot: Shot) -> bytes:
    """The trigger dialog with the form of the params; nothing is triggered."""
    page = shot.page
    page.goto(shot.url)
    page.get_by_role("button", name="Trigger Dag").click()
    dialog = page.get_by_role("dialog")
    for name, text in FORM.items():
        dialog.locator(f"[name={name}]").fill(text)
    dialog.get_by_placeholder("Enter each string on a new line").fill(FORM_QUESTIONS)
    expect(dialog.get_by_role("button", name="Trigger", exact=True)).to_be_in_viewport()
    _leave_alone(page)
    return page.screenshot(clip=_box(dialog))


def take_gemini_connection(shot: Shot) -> bytes:
    """The form of a Gemini API connection, filled in."""
    return _take_connection(shot, "Gemini API", GEMINI_FORM)


def take_vertex_connection(shot: Shot) -> bytes:
    """The form of a Vertex AI connection with its extra fields, filled in."""
    return _take_connection(shot, "Vertex AI (Gemini)", VERTEX_FORM)


def take_toolbox_connection(shot: Shot) -> bytes:
    """The form of an MCP Toolbox connection."""
    return _take_connection(shot, "MCP Toolbox", TOOLBOX_FORM)


def _take_connection(shot: Shot, kind: str, values: dict[str, str]) -> bytes:
    page = shot.page
    page.goto(f"{shot.ui}/connections")
    page.get_by_role("button", name="Add Connection").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox").click()
    page.keyboard.type(kind)
    page.keyboard.press("Enter")
    # The form of the type replaces the empty one, and what was typed before.
    dialog.get_by_role("button", name="Standard Fields").wait_for()
    extra = dialog.get_by_role("button", name="Extra Fields", exact=True)
    if any(name.startswith("element_") for name in values):
        extra.click()
    for name, text in values.items():
        dialog.locator(f"[name={name}]").fill(text)
    expect(dialog.get_by_role("button", name="Save")).to_be_in_viewport()
    _leave_alone(page)
    return page.screenshot(clip=_box(dialog))


@dataclass(frozen=True)
class Picture:
    """How one picture is taken; width and height are those of the browser's page, in CSS pixels."""

    take: Callable[[Shot], bytes]
    width: int
    height: int
    of_run: bool = True


PICTURES = {
    "graph": Picture(take_graph, 900, 1330),
    "mapped": Picture(take_mapped, 1000, 1100),
    "form": Picture(take_form, 820, 1560),
    "gemini_connection": Picture(take_gemini_connection, 820, 900, of_run=False),
    "toolbox_connection": Picture(take_toolbox_connection, 820, 1400, of_run=False),
    "vertex_connection": Picture(take_vertex_connection, 820, 1400, of_run=False),
}


def main() -> int:
    """Takes the pictures; returns the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=__doc__)
    for name, default, what in (
        ("--home", ".demo", "folder of the Airflow"),
        ("--dags", "dags", "folder with DAG files"),
        ("--into", "docs/images", "folder for the pictures"),
    ):
        parser.add_argument(name, type=Path, default=Path(default), metavar="DIR", help=f"{what} (%(default)s)")
    parser.add_argument("--only", choices=PICTURES, nargs="+", default=list(PICTURES), help="not all pictures")
    parser.add_argument("--new-run", action="store_true", help="make a run even if there is one")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what it started, as Ctrl-C does
    try:
        with _airflow(arguments.home, arguments.dags) as airflow:
            run_id = ""
            if any(PICTURES[name].of_run for name in arguments.only):
                airflow.client.wait_for_dag(DAG_ID, since=airflow.started_at, check=airflow.check)
                run_id = (None if arguments.new_run else _fitting_run(airflow)) or _make_run(airflow)
            _take(airflow, run_id, arguments.only, arguments.into)
    except (StandaloneError, ScreenshotError) as error:
        print(error, file=sys.stderr)
        return 1
    except Error as error:
        print(f"The browser did not get what it looked for: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


class ScreenshotError(Exception):
    """No picture can be taken; the text says why."""


# -- the demo ------------------------------------------------------------------------------------------------


@contextmanager
def _airflow(home: Path, dags: Path) -> Iterator[StandaloneAirflow]:
    running = StandaloneAirflow.attach(home)
    if running is not None and running.owner:
        raise ScreenshotError(f"Another adk-airflow command (process {running.owner.pid}) uses {running.home}. Wait for it.")
    if running is not None and not running.abandoned:
        print(f"Using the Airflow that runs in {running.home}.")
        yield running
        return
    # Without the schedule: unpausing would start the run that is due, too, beside the one for the pictures.
    airflow = StandaloneAirflow(home, dags, settings={"AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False"})
    print(f"Starting Airflow in {airflow.home} (about half a minute) ...", flush=True)
    try:
        airflow.start()
        yield airflow
    finally:
        airflow.stop()


def _fitting_run(airflow: StandaloneAirflow) -> str | None:
    """The last successful run of the DAG as it is now, with its default params."""
    client = airflow.client
    latest = client.get(f"/dags/{DAG_ID}/details")["latest_dag_version"]
    for run in reversed(client.runs(DAG_ID)):
        versions = [version["id"] for version in run["dag_versions"]]
        if run["state"] == "success" and not run["conf"] and versions == [latest["id"]]:
            return str(run["dag_run_id"])
    return None


def _make_run(airflow: StandaloneAirflow) -> str:
    client = airflow.client
    client.unpause(DAG_ID)
    run_id = str(client.trigger(DAG_ID)["dag_run_id"])
    print(f"Running {DAG_ID} ...", flush=True)
    view = watch_run(client, DAG_ID, run_id, timeout=600.0, check=airflow.check)
    if view.state != "success":
        failed = ", ".join(sorted({task["task_id"] for task in view.failed_instances}))
        raise ScreenshotError(f"The run {run_id} of {DAG_ID} failed ({failed}); `make demo` shows why.")
    return run_id


# -- the browser ---------------------------------------------------------------------------------------------


def _take(airflow: StandaloneAirflow, run_id: str, names: list[str], into: Path) -> None:
    tasks = [str(task["task_id"]) for task in airflow.client.tasks(DAG_ID)] if run_id else []
    into.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        # With `launch` each start has a profile of its own, in a temporary folder.
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=CHROMIUM_ARGUMENTS)
        try:
            for name in names:
                picture = PICTURES[name]
                page = _logged_in(browser, airflow, picture)
                png = picture.take(Shot(page, airflow.url, run_id, tasks))
                page.close()
                path = into / f"{name}.png"
                path.write_bytes(_smaller(png))
                print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
        finally:
            browser.close()


def _logged_in(browser: Browser, airflow: StandaloneAirflow, picture: Picture) -> Page:
    page = browser.new_page(
        viewport={"width": picture.width, "height": picture.height},
        device_scale_factor=SCALE,
        reduced_motion="reduce",
        locale="en-US",
    )
    page.set_default_timeout(60_000)
    username, password = airflow.login()
    page.goto(airflow.url)
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{airflow.url}/")
    return page


def _settle(page: Page) -> None:
    """Waits until the graph neither moves nor grows any more: 30 frames alike."""
    page.wait_for_function(
        """() => {
            const now = document.querySelector('.react-flow__viewport').outerHTML;
            const alike = window.lastGraph === now ? (window.framesAlike || 0) + 1 : 0;
            [window.lastGraph, window.framesAlike] = [now, alike];
            return alike >= 30;
        }"""
    )
    page.evaluate("window.framesAlike = 0")


def _leave_alone(page: Page) -> None:
    """Takes pointer and focus away, and with them tooltips and frames that a reader would wonder about."""
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur()")
    expect(page.get_by_role("tooltip")).to_have_count(0)


def _box(part: Locator) -> FloatRect:
    box = part.bounding_box()
    if box is None:
        raise ScreenshotError("A part of Airflow's page that was to be in the picture is not visible.")
    return box


def _smaller(png: bytes) -> bytes:
    """The same picture with 256 colours: a third of the bytes, no difference to the eye."""
    smaller = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        few = image.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(smaller, "PNG", optimize=True)
    return smaller.getvalue()


if __name__ == "__main__":
    sys.exit(main())
