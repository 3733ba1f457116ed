"""The directions for which the roles of their components have been trained."""

import pytest

from fairseq_ext.dual.transformer.roles import check_trained, is_trained


@pytest.mark.parametrize(
    "pair, pairs, trained",
    [
        ("xx-yy", "xx-yy", True),
        ("yy-xx", "xx-yy", False),
        ("yy-xx", "xx-yy,yy-xx", True),
        ("yy-zz", "xx-yy,yy-xx,xx-zz,zz-xx", True),
        ("zz-yy", "xx-yy,zz-xx", True),
        ("yy-zz", "xx-yy,zz-xx", False),
        ("xx-zz", "xx-yy,zz-xx", False),
        ("xx-xx", "xx-yy,yy-xx", False),
        ("xx-qq", "xx-yy,yy-xx", False),
    ],
)
def test_both_roles_have_to_be_trained(pair, pairs, trained):
    """Encoders are the sources of the pairs, decoders their targets."""
    assert is_trained(pair, pairs.split(",")) is trained


def test_the_error_names_the_pairs():
    check_trained("xx-yy", ["xx-yy"])
    with pytest.raises(ValueError, match="direction 'yy-xx': the model was trained for xx-yy, xx-"):
        check_trained("yy-xx", ["xx-yy", "xx-zz"])
