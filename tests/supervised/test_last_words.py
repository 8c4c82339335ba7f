"""What is kept of all that a plugin prints."""

from kubescene.supervised.last_words import LastWords


def test_what_go_plugin_writes_about_itself_is_nobodys_words() -> None:
    words = LastWords()
    words.add("stderr", b'{"@level":"debug","@message":"plugin address","network":"unix"}\n')
    assert words.told() == " (it said nothing)"
    words.add("stderr", b'panic: no idea\n{"@level":"trace","@message":"over"}\n')
    words.add("stderr", b'{"@level":"error","@message":"mine"}\n')
    assert (
        words.told() == ' (its last words: panic: no idea / {"@level":"error","@message":"mine"})'
    )
