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


def test_of_a_crash_in_go_the_reason_is_told_and_not_the_end_of_the_stack() -> None:
    words = LastWords()
    frames = "".join(f"main.step{place}()\n\t/src/main.go:{place} +0x1d\n" for place in range(40))
    text = "starting\npanic: no such file\n\ngoroutine 7 [running]:\n" + frames
    words.add("stderr", text[:30].encode())
    words.add("stderr", text[30:].encode())
    assert words.told() == (
        " (its last words: panic: no such file / goroutine 7 [running]: / main.step0() / "
        "\t/src/main.go:0 +0x1d / ... / \t/src/main.go:39 +0x1d)"
    )


def test_a_short_crash_is_told_as_it_stands() -> None:
    words = LastWords()
    words.add("stderr", b"starting\nfatal error: all goroutines are asleep\nexit status 2\n")
    assert words.told() == (
        " (its last words: starting / fatal error: all goroutines are asleep / exit status 2)"
    )
