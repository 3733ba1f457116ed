"""Which worker trains which pairs with --pair-parallel."""

from fairseq_ext.streams.assignment import assign_pairs


def uses(pairs, shared=5):
    """An attention that all share, an encoder of size 10 and a decoder of 20 for each language."""
    return {
        pair: {
            "attention": shared,
            f"encoder.{pair.split('-')[0]}": 10,
            f"decoder.{pair.split('-')[1]}": 20,
        }
        for pair in pairs
    }


def assigned(workers, **loads):
    loads = {name.replace("_", "-"): load for name, load in loads.items()}
    return assign_pairs(loads, uses(loads), workers)


def test_pairs_with_the_same_decoder_stay_together():
    """With equal loads 2 + 2: into en on one worker, out of en on the other."""
    by_worker = assigned(2, de_en=9, en_de=9, fr_en=9, en_fr=9)
    assert by_worker == [["de-en", "fr-en"], ["en-de", "en-fr"]]


def test_loads_go_before_sharing():
    """xx-zz is as long as the others together, although all have the same decoder."""
    by_worker = assigned(2, xx_zz=30, yy_zz=10, vv_zz=10, ww_zz=10)
    assert by_worker == [["xx-zz"], ["yy-zz", "vv-zz", "ww-zz"]]


def test_every_pair_has_one_worker_and_every_worker_a_pair():
    langs = "abcdef"
    loads = {f"{s}-{t}": 5 + ord(s) % 3 for s in langs for t in langs if s != t}
    by_worker = assign_pairs(loads, uses(loads), 4)
    assert sorted(pair for pairs in by_worker for pair in pairs) == sorted(loads)
    totals = [sum(loads[pair] for pair in pairs) for pairs in by_worker]
    assert min(totals) > 0 and max(totals) <= 1.15 * sum(totals) / 4
    assert by_worker == assign_pairs(loads, uses(loads), 4)
