"""What `infer` says of a machine's description that it does not read, and in the file that it writes."""

from walltime.inference.inference import Inference, InferredRule, site_text, unread_of, write_site
from walltime.inference.one_step import Score
from walltime.machine import Limit, Machine, Outage, Partition, Pool, Window, read_machine

NODES = Pool("all", 4, 8)
MAIN = Partition("main", ("all",))


def test_unread__is_nothing_for_one_pool_of_equal_nodes():
    assert unread_of(None) == unread_of(Machine((NODES,), (MAIN,))) == []


def test_unread__names_everything_else_that_the_file_says(golden):
    big = Pool("big", 2, 64)
    outage, limit = Outage("big", 0, 10, announced=0), Limit(("user",), jobs=3)
    [note] = unread_of(Machine((NODES, big), (MAIN, Partition("big", ("big",))), (outage,), (limit,), "site", policy="slurm"))
    golden("infer", note)
    for what in ("2 pools", "2 partitions", "outages", "limits", "the policy", "nodes of different sizes (8, 64 processors"):
        assert what in note
    assert "windows" not in note


def inferred():
    """A site with one rule, and a job that was held."""
    score, day = Score(10, 9, 8, 9), 86_400
    window = Window(begin="08:00", days=("mon",), until=250 * day)
    return Inference(
        log="log",
        rules=[InferredRule("window", "no job across 08:00", "few requests cross it", 0.1, 0.01, 9, 0, until=250 * day)],
        machine=Machine((Pool("all", 4, 1),), (Partition("all", ("all",)),), windows=(window,)),
        before=score,
        after=score,
        hindsight=score,
        months=(),
        delay=(0, 0, 0),
        misfits=0,
        clock=0,
        unix_start_time=843_523_200,  # 1996-09-24
        held={17: 3600},
    )


def test_site_text__says_until_which_day_a_rule_holds(golden):
    inference = inferred()
    golden("infer", site_text(inference))


def test_write_site__names_the_table_of_held_jobs_only_if_that_is_asked_for(tmp_path):
    file = tmp_path / "site.toml"
    assert write_site(file, inferred()) == [file]
    assert read_machine(file).eligible is None
    assert [path.name for path in tmp_path.iterdir()] == ["site.toml"]
    table = tmp_path / "site.held.csv"
    assert write_site(file, inferred(), eligible=True) == [file, table]
    assert table.read_text() == "job_id,held\n17,3600\n"
    assert read_machine(file).eligible == str(table)
    assert "# no job across 08:00" in file.read_text()
