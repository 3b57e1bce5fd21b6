"""The live run: written once at the first start; later differences of the configuration are reported."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from farmwatch.canaries.file import canary_sender
from farmwatch.config.config import load
from farmwatch.config.opening import open_configured
from farmwatch.config.topic_limits import create_topics
from farmwatch.doctor.checks import require_fit
from farmwatch.runs.notices import difference_text
from filters.rules.ruleset import load_ruleset
from replay.live.cutover import CutoverRequest, cut_over
from replay.live.live_run import Differing, canaries_sent_before, differences, ensure_live_run, find_rules
from replay.rows.site_table import read_sites
from replay.runs.configured import configured_site_method, site_method_of, site_method_to_keep
from replay.runs.lookup import names_to_read
from replay.runs.run_rules import RunRules
from scoring.errors import BadThresholds, NoSiteTest
from scoring.stages.tally import TallyStage
from stream.log.contract import Output, partition_of
from stream.schema.records import Page, SiteState, decode, encode
from stream.schema.roles import Role
from stream.schema.runs import LIVE, Alias, RunStatus, names_of
from stream.schema.topics import PAGES
from stream.text.user_errors import Exit, FarmwatchError, RunRefused
from tests.support.front_door import PARTITIONS, Runner
from tests.support.runs.cutover_world import DETECTOR, CutoverWorld, config_of
from tests.support.runs.replay_world import put_rows

_ODD = "binoculars/a+b@2/bf16/512/none"


def test_the_first_start_writes_the_run_with_its_rules(world: CutoverWorld) -> None:
    """Name, digest and text of the ruleset, detector and operator; a second start changes nothing."""
    live = ensure_live_run(world.log, world.config, by="me@here", clock=lambda: 7_000)
    assert (live.run.name, live.run.ruleset, live.run.detector) == ("live", "default", DETECTOR)
    assert (live.run.created_at, live.run.created_by) == (7_000, "me@here")
    assert live.ruleset.digest == live.run.digest == load_ruleset("default").digest
    other = config_of(world.config.log.url, "judge.ruleset=notes", "tally.detector=other/2/y")
    assert ensure_live_run(world.log, other).run == live.run
    assert find_rules(world.log, other).ruleset.name == "default"
    assert world.control().alias == Alias()


def test_the_first_run_names_the_model_of_its_extractor_without_its_file(world: CutoverWorld) -> None:
    """A role other than MEASURE needs no file: the model's digest is the name of it."""
    name = "none/0123456789abcdef.json"
    config = config_of(world.config.log.url, "measure.extractor=blocks", f"measure.extractor_model={name}")
    run = ensure_live_run(world.log, config).run
    assert run.measured_by == {"measure.extractor": "blocks", "measure.extractor_model": name}


def test_a_pair_does_not_begin_a_live_run_of_fluent_text(
    world: CutoverWorld, farmwatch: Runner, tmp_path: Path
) -> None:
    """SCORE would run one that divides by perplexity: refused at the first start, at the next, and at a cutover."""
    ruleset = tmp_path / "fluent.toml"
    ruleset.write_text('scores = "fluent"\n[rules.extracted]\nthreshold = "ok"\n', encoding="utf-8")
    settings = (f"judge.ruleset={ruleset}", f"tally.detector={DETECTOR}")
    both = config_of(world.config.log.url, *settings, 'score.detectors=["lite-ngram", "binoculars"]')
    with pytest.raises(RunRefused, match="binoculars divides by perplexity"):
        ensure_live_run(world.log, both)
    assert world.control().live is None
    ensure_live_run(world.log, config_of(world.config.log.url, *settings))
    require_fit(config_of(world.config.log.url, *settings), [Role.JUDGE], world.log)
    with pytest.raises(FarmwatchError, match=r"the live run first cannot .*binoculars divides by perplexity"):
        require_fit(both, [Role.SCORE], world.log)
    world.begin("r1", str(ruleset))
    ran = farmwatch("cutover", "r1", "--set", f"score.detectors={both.score.detectors}", "--log", both.log.url)
    assert (ran.code, "binoculars divides by perplexity" in ran.err) == (Exit.PROBLEM, True), ran.err


def test_roles_that_start_at_once_write_one_run(world: CutoverWorld) -> None:
    """Four roles that start at the same time get the same run."""

    def begin(_: int) -> RunRules:
        with closing(open_configured(world.config)) as log:
            return ensure_live_run(log, world.config)

    with ThreadPoolExecutor(4) as pool:
        assert [live.run for live in pool.map(begin, range(4))] == [world.control().live] * 4


def test_a_role_without_the_detector_leaves_it_open(world: CutoverWorld) -> None:
    """JUDGE without the weights begins the run without a detector, and TALLY fills it in."""
    nothing = config_of(world.config.log.url, "tally.detector=lite-ngram", "score.weights=/nowhere")
    assert ensure_live_run(world.log, nothing).run.detector == ""
    assert ensure_live_run(world.log, world.config).run.detector == DETECTOR
    assert ensure_live_run(world.log, nothing).run.detector == DETECTOR


@pytest.mark.parametrize(
    ("flags", "differing"),
    [
        ((), []),
        (("judge.ruleset=notes",), [Differing.RULESET]),
        (("tally.detector=lite-ngram",), [Differing.UNSCORED_DETECTOR]),
        (("measure.tokenizer=words",), [Differing.EPOCH]),
        (("tally.sprt={p0=0.2, p1=0.6}",), [Differing.SITE_METHOD]),
        (("judge.ruleset=notes", "tally.detector=other/1/x"), [Differing.RULESET, Differing.UNSCORED_DETECTOR]),
    ],
)
def test_configuration_differences_are_found(
    world: CutoverWorld, flags: tuple[str, ...], differing: list[Differing]
) -> None:
    """One for each difference; each says how both values become live by one replay."""
    live = ensure_live_run(world.log, world.config)
    different = differences(live, config_of(world.config.log.url, *flags), world.control())
    assert [differs.what for differs in different] == differing
    for differs in different:
        said = difference_text(differs)
        assert f"the live run {live.run.shown} " in said
        for command in ("`farmwatch replay --", "`farmwatch compare live NEW`", "`farmwatch cutover NEW`"):
            assert command in said
    if len(different) > 1:
        assert all("--ruleset notes --detector other/1/x --name NEW" in difference_text(one) for one in different)


def test_a_finished_run_that_matches_is_named(world: CutoverWorld) -> None:
    """A finished run with that ruleset, detector, epoch and site method makes a replay unnecessary.

    A running one does not count, nor one with other numbers of the site test; for the previous live run it is `--back`.
    """
    live = ensure_live_run(world.log, world.config)
    config = config_of(world.config.log.url, "judge.ruleset=notes")
    method = site_method_to_keep(config, DETECTOR)

    def remedy() -> str:
        (differs,) = differences(live, config, world.control())
        return difference_text(differs).partition("To change over: ")[2]

    world.begin("odd", epoch=live.run.epoch, state=RunStatus.DONE, site_method=method.replace("0.6", "0.7"))
    world.begin("under-way", epoch=live.run.epoch, site_method=method)
    assert remedy().startswith("`farmwatch replay --ruleset notes --name NEW`")
    older = method.replace('"min_pages":1,', "")  # as a version wrote it that did not have that number
    world.replay(world.begin("ready", epoch=live.run.epoch, site_method=older))
    assert remedy() == "the run ready matches already: `farmwatch compare live ready`, `farmwatch cutover ready`"
    cut_over(world.log, CutoverRequest("ready", "me"))
    cut_over(world.log, CutoverRequest("", "me"))
    assert remedy() == "the run ready, which was live before, matches: `farmwatch cutover --back`"


def test_a_detector_that_score_still_runs_stays_live(world: CutoverWorld) -> None:
    """SCORE runs two detectors; the other one is now configured for site verdicts: the live run keeps its own."""
    lite = config_of(world.config.log.url, "tally.detector=lite-ngram")
    live = ensure_live_run(world.log, lite)
    (differs,) = differences(live, config_of(world.config.log.url, "tally.detector=other/1/x"), world.control())
    assert (differs.what, differs.wanted.detector) == (Differing.DETECTOR, "other/1/x")


def test_a_detector_whose_thresholds_are_gone_takes_numbers_from_the_settings(world: CutoverWorld) -> None:
    """After a calibration, the live run's thresholds no longer exist: numbers in tally.sprt are enough to continue."""
    settings = ("score.detectors=binoculars", 'score.thresholds={binoculars="falcon-accuracy"}', "tally.detector=")
    config = config_of(world.config.log.url, *settings)
    assert configured_site_method(config, "binoculars/a+b@2/bf16/512/none").name == "sprt"
    with pytest.raises(BadThresholds):
        configured_site_method(config_of(world.config.log.url, *settings[:2], f"tally.detector={_ODD}"))


def test_the_live_run_keeps_its_site_method(world: CutoverWorld) -> None:
    """A later [tally] does not change it, nor does a detector without numbers."""
    live = ensure_live_run(world.log, world.config)
    later = config_of(world.config.log.url, "tally.sprt={p0=0.3, p1=0.6}", "tally.close_after_s=60")
    begun = configured_site_method(world.config, DETECTOR)
    assert ensure_live_run(world.log, later).run.site_method == live.run.site_method
    assert site_method_of(later, live.run).digest == begun.digest != configured_site_method(later, DETECTOR).digest
    gone = load(None, [f"log.url={world.config.log.url}", "tally.method=deciles"], {}).config
    assert site_method_of(gone, live.run).digest == begun.digest
    with pytest.raises(NoSiteTest):
        site_method_of(gone, msgspec.structs.replace(live.run, site_method=""))


def test_an_unfit_live_run_names_the_way_back(world: CutoverWorld, farmwatch: Runner) -> None:
    """Its site method is of a newer farmwatch: `up` and the role report it at once, with `cutover --back`."""
    world.begin_live()
    world.replay(world.begin("r1", site_method='{"method":"sprt","of":"later"}'))
    put_rows(world.log, Alias(run="r1", before="live", number=1))
    flags = (*("--log", world.config.log.url), *("--set", f"tally.detector={DETECTOR}"), "--set", "metrics.port=0")
    for arguments in (["--role", "judge,tally"], ["--role", "tally", "--in-process"]):
        ran = farmwatch("up", *arguments, *flags)
        assert ran.code == Exit.UNAVAILABLE
        assert "the live run r1 cannot be processed: the run r1 has a site method that" in ran.err
        assert "`farmwatch cutover --back` goes back to the run first" in ran.err


def test_another_version_of_the_rules_code_is_reported(world: CutoverWorld) -> None:
    """The same text gives another digest than at the begin."""
    live = ensure_live_run(world.log, world.config)
    older = RunRules(msgspec.structs.replace(live.run, digest="0" * 16), live.text)
    (differs,) = differences(older, world.config, world.control())
    assert differs.what is Differing.RULES_AS_READ


def test_up_and_doctor_report_a_changed_ruleset_file(
    world: CutoverWorld, farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file changed since the first start: `up` and `doctor` name both digests, and the live one stays in force."""
    file = tmp_path / "mine.toml"
    source = load_ruleset("default").source
    file.write_text(source)
    flags = [f"log.url={world.config.log.url}", f"judge.ruleset={file}", f"tally.detector={DETECTOR}"]
    arguments = [part for flag in (*flags, "tally.sprt={p0=0.1, p1=0.6}", "metrics.port=0") for part in ("--set", flag)]
    monkeypatch.setattr("farmwatch.commands.start.running._supervise", lambda *_: Exit.OK)
    first = farmwatch("up", "--role", "judge,tally", *arguments)
    assert (first.code, "judge.ruleset (" in first.err) == (Exit.OK, False), first.err
    before = world.control().live
    assert before is not None and before.ruleset == "mine"
    file.write_text(load_ruleset("notes").source)
    second = farmwatch("up", "--role", "judge,tally", *arguments)
    sentence = f"judge.ruleset (mine {load_ruleset('notes').digest}) differs from the live run first (mine"
    kept = "The live run wins. To remove this notice: "
    kept += "set judge.ruleset to its file (`farmwatch runs show live --ruleset-text` prints it)"
    assert f"{sentence} {before.digest}). {kept}" in second.err
    assert world.control().live == before
    assert f"WARN  live run     {sentence}" in farmwatch("doctor", *arguments).out


def test_readers_follow_the_alias_or_the_name(world: CutoverWorld, farmwatch: Runner) -> None:
    """`sites`, `rate` and `rate --history` read the rows of the live run, or of --run, without a message."""
    world.begin_live()
    world.features(30)
    world.replay(world.begin("r1"))
    assert (read_sites(world.log), len(read_sites(world.log, "r1"))) == ([], 10)
    flags = ("--log", world.config.log.url)
    assert farmwatch("sites", *flags).out.count("\n") == 1
    assert farmwatch("sites", "--run", "r1", *flags).out.count("\n") == 11
    rate = farmwatch("rate", "--run", "r1", *flags)
    assert "10 sites" in rate.out
    assert "20 of 20 articles have no score yet: in no verdict; `farmwatch runs show r1` says why" in rate.err
    cut_over(world.log, CutoverRequest("r1", "me"))
    assert farmwatch("sites", *flags).out.count("\n") == 11
    assert farmwatch("sites", "--run", "first", *flags).out.count("\n") == 1
    assert farmwatch("sites", "--run", "before", *flags).out.count("\n") == 1
    assert farmwatch("sites", "--run", "live", *flags).out.count("\n") == 11
    assert "10 sites" in farmwatch("rate", *flags).out
    explained = farmwatch("page", "http://s1.example/1", *flags)
    assert "ruleset notes" in explained.out and "judged r1" in explained.out
    for command in (["sites"], ["rate"], ["rate", "--history"], ["page", "http://s1.example/1"]):
        ran = farmwatch(*command, "--run", "nope", *flags)
        assert (ran.code, "there is no run 'nope'; the runs of this log: first, r1" in ran.err) == (Exit.PROBLEM, True)


def test_a_round_of_canaries_is_not_sent_again_by_the_next_run(world: CutoverWorld, tmp_path: Path) -> None:
    """After a cutover the new run sends canaries only in the next round, because the previous run sent this one.

    Rows of canary sites are removed from the topic of the live run.
    """
    file = tmp_path / "canaries.jsonl"
    lines = [{"truth": "llm", "site": f"c{n}", "text": f"Text {n}."} for n in range(8)]
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    config = config_of(world.config.log.url, f"canary.file={file}")
    canary = config.canary, config.rate.canary_days, config.log.partitions
    world.begin_live()
    world.features(20)
    world.work("tally", TallyStage(DETECTOR, config.tally, canaries=canary_sender(*canary)))
    sent = _pages(world)
    assert len(sent) == 8
    run = world.begin("r1")
    world.replay(run)
    cut_over(world.log, CutoverRequest("r1", "me", max_lag=1000))
    world.features(20)
    names = run.names(is_live=True)
    sender = canary_sender(*canary, names.sites, lambda partition: canaries_sent_before(world.log, "r1", partition))
    world.work(names.tally_group, TallyStage(DETECTOR, config.tally, "r1", canaries=sender, names=names))
    assert _pages(world) == sent


def _pages(world: CutoverWorld) -> list[str]:
    return [
        decode(Page, message.value or b"").id
        for partition in range(PARTITIONS)
        for message in world.log.read(PAGES, partition)
    ]


def test_names_of_an_empty_log(tmp_path: Path) -> None:
    """Before the first live stage, readers use the names of the first run."""
    config = config_of(f"sqlite:{tmp_path / 'log'}")
    with closing(open_configured(config)) as log:
        assert names_to_read(log) == names_of(LIVE, is_live=True)
        create_topics(log, config)
        row = SiteState(id="a.example", site="a.example")
        log.append([Output("sites", partition_of("a.example", PARTITIONS), b"a.example", encode(row))])
        assert [found.site for found in read_sites(log)] == ["a.example"]
        put_rows(log, Alias())
        assert names_to_read(log).sites == "sites"
