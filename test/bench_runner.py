"""Tests of bench/runner, with programs that are scripts and figures that are
made up."""

import json
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from runner import ablating, comparing, measuring, page, peers  # noqa: E402
from runner.common import BENCH, Failure  # noqa: E402
from runner.results import Results  # noqa: E402

MACHINE = {"date": "2026-01-01T00:00:00+00:00", "cpu": "none", "cpus": 2,
           "kernel": "Linux", "load": 0.0,
           "versions": {"goro": "1", "go": "go1", "boost": "1"}}
QUIET = {"cpu": 1.0, "others": 0.0}


UNITS = {"echo": "/s", "memory": "B"}


def results(figures):
    """figures: {(result, procs, peer): [value of each round]}"""
    made = Results(dict(MACHINE))
    for (result, procs, peer), values in figures.items():
        for number, value in enumerate(values, 1):
            line = {"name": result, "procs": procs, "value": value,
                    "unit": UNITS.get(result.partition(".")[0], "ns"),
                    "check": "same"}
            if result.endswith("p99"):
                line["quantiles"] = [[0, 1], [.5, value / 2], [.99, value],
                                     [1, value * 2]]
            made.add(procs, peer, number, line, QUIET)
    return made


def comparison(figures):
    return comparing.Comparison(results(figures))


def goal(compared, what, procs):
    return next(g for g in compared.goals
                if g["what"].startswith(what) and g["procs"] == procs)


class Comparing(unittest.TestCase):
    def test_less_is_better_but_more_per_second(self):
        c = comparison({("yield", 1, "goro"): [10, 10, 10],
                        ("yield", 1, "go"): [50, 50, 50],
                        ("echo.1", 1, "goro"): [300, 300, 300],
                        ("echo.1", 1, "go"): [100, 100, 100]})
        self.assertEqual(c.by_key["yield", 1, "go"]["ratio"], 5)
        self.assertEqual(c.by_key["echo.1", 1, "go"]["ratio"], 3)

    def test_interval_spans_what_the_rounds_do(self):
        c = comparison({("yield", 1, "goro"): [10, 10, 20, 20, 15],
                        ("yield", 1, "go"): [30, 30, 30, 30, 30]})
        found = c.by_key["yield", 1, "go"]
        self.assertEqual(found["ratio"], 2)
        self.assertEqual((found["low"], found["high"]), (1.5, 3))

    def test_other_work_gives_no_ratio(self):
        made = results({("yield", 1, "goro"): [1], ("yield", 1, "go"): [2]})
        made.get("yield", 1, "go").checks = {"less"}
        c = comparing.Comparison(made)
        self.assertFalse(c.by_key)
        self.assertEqual(len(c.mismatches), 1)

    def test_goals_are_met_missed_or_in_doubt(self):
        def verdict(ours):
            c = comparison({("yield", 1, "goro"): ours,
                            ("yield", 1, "go"): [50] * len(ours)})
            return goal(c, "yield", 1)["verdict"]
        self.assertEqual(verdict([5, 5, 5]), "met")
        self.assertEqual(verdict([20, 20, 20]), "missed")
        self.assertEqual(verdict([9, 9, 12, 9, 12]), "met?")
        self.assertEqual(goal(comparison({}), "yield", 1)["verdict"],
                         "not measured")

    def test_a_workload_counts_once_in_the_mean(self):
        c = comparison({("a", 1, "goro"): [1], ("a", 1, "go"): [16],
                        ("b.x", 1, "goro"): [1], ("b.x", 1, "go"): [1],
                        ("b.y", 1, "goro"): [1], ("b.y", 1, "go"): [1]})
        mean, count = c.mean_over_workloads("go", 1)
        self.assertEqual((round(mean, 9), count), (4, 2))

    def test_those_worse_are_listed(self):
        c = comparison({("a", 1, "goro"): [2, 2], ("a", 1, "go"): [1, 1],
                        ("b", 1, "goro"): [1, 1], ("b", 1, "go"): [2, 2]})
        worse = goal(c, "worse", 1)
        self.assertEqual((worse["list"], worse["verdict"]), (["a 0.50"], "missed"))

    def test_memory_is_told_of_and_has_goals_of_its_own(self):
        c = comparison({("memory.bytes", 1, "goro"): [2, 2],
                        ("memory.bytes", 1, "go"): [1, 1],
                        ("b", 1, "goro"): [1, 1], ("b", 1, "go"): [2, 2]})
        for what in "worse", "a peer":
            told = goal(c, what, 1)
            self.assertEqual(told["verdict"], "met")
            self.assertIn("memory.bytes 0.50", told["list"][0])
            self.assertTrue(told["got"].startswith("0 of 1"))

    def test_peers_ahead_are_listed_with_the_given_figures(self):
        c = comparison({("yield", 1, "goro"): [20], ("yield", 1, "boost"): [19]})
        ahead = goal(c, "a peer", 1)["list"]
        self.assertIn("libgo* yield 0.55", ahead)
        self.assertFalse([text for text in ahead if "boost" in text])

    def test_the_floor_is_told_and_is_nobody_ahead(self):
        c = comparison({("echo.100", 1, "goro"): [120, 120, 120],
                        ("echo.100", 1, "go"): [100, 100, 100],
                        ("echo.100", 1, "bare"): [150, 150, 150]})
        self.assertIn("the calls alone 1.50", goal(c, "echo.100", 1)["got"])
        self.assertFalse([who for who in goal(c, "a peer more", 1)["list"]
                          if who.startswith("bare")])

    def test_many_processors_are_compared_with_two(self):
        c = comparison({("a", 2, "goro"): [10], ("a", 64, "goro"): [11],
                        ("b", 2, "goro"): [10], ("b", 64, "goro"): [20]})
        self.assertEqual(goal(c, "64 Ps", 64)["list"], ["b 0.50"])

    def test_noise_is_told(self):
        made = results({("a", 1, "goro"): [1, 2, 3, 4]})
        made.get("a", 1, "goro").others = [0.5]
        told = " ".join(comparing.Comparison(made).noise)
        self.assertIn("other processes", told)
        self.assertIn("vary", told)


class Ablating(unittest.TestCase):
    class Goro:
        directory = Path("/nowhere")

    def test_settings_are_those_of_the_library_and_workloads_exist(self):
        header = (BENCH.parent / "src/base/debug.h").read_text()
        switches = set(re.findall(r"^\tX\((\w+)\)", header, re.M))
        for peer in ablating.make_ablated(self.Goro):
            self.assertIn(peer.name.partition("=")[0], switches)
            measuring.choose_workloads(peer.workloads)
            self.assertEqual(peer.env, {"GORO_DEBUG": peer.name})
            self.assertIsNone(peer.command("no such workload", 1))
        self.assertRaises(Failure, ablating.make_ablated, self.Goro, ["x=1"])

    def test_a_mechanism_gains_if_goro_is_a_tenth_slower_without_it(self):
        def verdict(without):
            c = comparison({("echo.1", 1, "goro"): [300] * 3,
                            ("echo.1", 1, "go"): [without] * 3})
            return ablating.verdict({("echo.1", 1): c.by_key["echo.1", 1, "go"]})
        self.assertEqual(verdict(200), "gains")
        self.assertEqual(verdict(290), "no gain")
        self.assertEqual(verdict(400), "no gain, loses elsewhere")
        self.assertEqual(ablating.verdict({}), "not measured")


class Choosing(unittest.TestCase):
    def test_all_workloads_or_some_that_there_are(self):
        known = measuring.choose_workloads(None)
        self.assertEqual(known, sorted(known))
        self.assertLess({"yield", "startup", "http"}, set(known))
        self.assertEqual(measuring.choose_workloads(["http"]), ["http"])
        self.assertRaises(Failure, measuring.choose_workloads, ["httpd"])

    def test_what_measures_from_outside_is_there(self):
        for workload in measuring.OUTSIDE:
            self.assertTrue(os.access(BENCH / workload, os.X_OK))

    def test_without_wrk_or_server_there_is_no_http(self):
        has_wrk = peers.has_wrk
        with tempfile.TemporaryDirectory() as work:
            peer = peers.Programs("goro", work)
            try:
                peers.has_wrk = lambda: True
                self.assertIsNone(peer.command("http", 1))
                server = Path(work) / "bench_httpd"
                server.touch()
                self.assertEqual(peer.command("http", 1),
                                 [BENCH / "http", server, "127.0.0.1:0"])
                peers.has_wrk = lambda: False
                self.assertIsNone(peer.command("http", 1))
            finally:
                peers.has_wrk = has_wrk


class Http(unittest.TestCase):
    """bench/http, with a server and a wrk that are scripts."""

    ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHi\n"
    SERVER = """#!/usr/bin/env python3
import socket
l = socket.create_server(("127.0.0.1", 0))
print(f"listening on port {l.getsockname()[1]}, gomaxprocs 3", flush=True)
c, _ = l.accept()
c.recv(1000)
c.sendall(%r)
l.accept()
"""
    FOUND = {"requests": 500, "bytes": 500 * len(ANSWER), "errors": 0, "us": 500000}

    def launch(self, answer=ANSWER, **found):
        with tempfile.TemporaryDirectory() as work:
            programs = {"wrk": f"#!/bin/sh\necho Running\n"
                               f"echo '{json.dumps(self.FOUND | found)}'\n",
                        "server": self.SERVER % answer.encode()}
            for name, text in programs.items():
                (Path(work) / name).write_text(text)
                (Path(work) / name).chmod(0o755)
            return subprocess.run(
                [BENCH / "http", Path(work) / "server"], text=True,
                capture_output=True, timeout=30,
                env={**os.environ, "PATH": f"{work}:{os.environ['PATH']}"})

    def refused(self, why, **how):
        done = self.launch(**how)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(why, done.stderr)

    def test_results_are_those_of_wrk(self):
        lines = measuring.parse_results(self.launch().stdout, 3)
        self.assertEqual([(line["name"], line["value"], line["unit"])
                          for line in lines],
                         [("http.1", 1000, "/s"), ("http.100", 1000, "/s"),
                          ("http.1000", 1000, "/s")])
        self.assertEqual({line["check"] for line in lines}, {"200 Hi\n"})

    def test_an_error_is_a_failure(self):
        self.refused("not every request", errors=1)
        self.refused("not every request", requests=0, bytes=0)
        self.refused("status 404", answer=self.ANSWER.replace("200", "404"))

    def test_answers_are_as_long_as_the_first(self):
        self.refused("500 answers of 41", bytes=500 * 40)
        self.refused("500 answers of 41", bytes=5000 * 41)

    def test_the_servers_cpus_are_told_not_those_of_wrk(self):
        made = Results(dict(MACHINE))
        line = measuring.parse_results(self.launch().stdout, 3)[0]
        made.add(3, "goro", 1, line | {"cpus": 0.9}, {"cpu": 1.9, "others": 0.0})
        self.assertEqual(made.get("http.1", 3, "goro").cpu, [0.9])


class Measuring(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.peer = peers.Programs("goro", self.work.name)
        self.args = types.SimpleNamespace(ablate=None, procs=[1], scale=[], rounds=3,
                                          seconds=None, timeout=10,
                                          patience=0)

    def tearDown(self):
        self.work.cleanup()

    def measure(self, script):
        program = Path(self.work.name) / "bench_yield"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        made = Results(dict(MACHINE))
        measuring.measure_all([self.peer], ["yield"], made, self.args)
        return made

    LINE = ('echo \'{"name":"yield","procs":%s,"value":5,"unit":"ns",'
            '"check":"done"}\'\n')

    def test_every_round_counts_but_the_first(self):
        made = self.measure(self.LINE % 1)
        self.assertEqual(list(made.get("yield", 1, "goro").values), [1, 2, 3])

    def test_one_failure_drops_all_figures(self):
        count = Path(self.work.name) / "count"
        made = self.measure(f"echo >> {count}\n[ $(wc -l < {count}) -lt 4 ] || "
                            "{ echo broken >&2; exit 3; }\n" + self.LINE % 1)
        self.assertIsNone(made.get("yield", 1, "goro"))
        self.assertIn("broken", made.failures["yield on 1: goro"])

    def test_a_disturbed_measurement_is_made_again(self):
        shares = iter((0.9, 0.3, 0.05, 0.0))
        once, pause = measuring.measure_once, measuring.PAUSE_SECONDS
        measuring.measure_once = lambda *_: ([], {"others": next(shares)})
        measuring.PAUSE_SECONDS = 0
        try:
            self.args.patience = 5
            _, machine = measuring.measure_quietly([], 1, None, self.args)
        finally:
            measuring.measure_once, measuring.PAUSE_SECONDS = once, pause
        self.assertEqual(machine["others"], 0.05)

    def test_another_number_of_processors_is_refused(self):
        self.assertIn("ran with 4", str(self.measure(self.LINE % 4).failures))

    def test_settings_of_the_shell_are_not_passed_on(self):
        env = measuring.environment(3, 0.5, {})
        self.assertEqual((env["GORO_MAXPROCS"], env["BENCH_SECONDS"]), ("3", "0.5"))
        self.assertNotIn("GORO_DEBUG", env)

    def test_settings_of_a_peer_are(self):
        env = measuring.environment(3, 0.5, {"GORO_DEBUG": "batch=-1"})
        self.assertEqual(env["GORO_DEBUG"], "batch=-1")


class Reporting(unittest.TestCase):
    FIGURES = {("yield", procs, peer): [value, value * 1.1]
               for peer, value in (("goro", 10), ("go", 50), ("boost", 8))
               for procs in (1, 2, 4, 64)}
    FIGURES |= {("timers.sleep.p99", procs, peer): [100, 110]
                for peer in ("goro", "go") for procs in (1, 2)}

    def write(self, writer):
        with tempfile.TemporaryDirectory() as work:
            path = Path(work) / "out"
            writer(path, comparison(self.FIGURES))
            return path.read_text()

    def test_page_needs_nothing_else(self):
        text = self.write(page.write_page)
        text = text.replace("http://www.w3.org/2000/svg", "")
        self.assertFalse(re.findall(r"https?:|<script|<link|src=|url\(", text))
        for title in ("Ratios", "Scaling", "Latencies", "Goals", "All figures"):
            self.assertIn(f"<h2>{title}</h2>", text)

    def test_charts_are_well_formed(self):
        charts = re.findall(r"<svg.*?</svg>", self.write(page.write_page), re.S)
        self.assertGreater(len(charts), 3)
        for chart in charts:
            ElementTree.fromstring(chart)
        ElementTree.fromstring(self.write(page.write_picture))

    def test_results_come_back_as_they_were(self):
        made = results(self.FIGURES)
        with tempfile.TemporaryDirectory() as work:
            path = Path(work) / "results.json"
            made.write(path, {})
            again = Results()
            again.read(path)
            self.assertEqual(again.as_json(), made.as_json())
            other = Results(MACHINE | {"cpu": "another"})
            self.assertRaises(Failure, other.read, path)


if __name__ == "__main__":
    unittest.main()
