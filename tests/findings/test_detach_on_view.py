"""detach-on-a-view: what the tensor is a view of, and since which line."""

from tests.findings.cells import one, told

RULE = "detach-on-a-view"
H = "h = torch.ones(4, requires_grad=True) * 2\n"


def test_the_base_and_the_line_of_the_view():
    finding = one(RULE, H + "v = h[:2]\nv.detach_()\n")
    assert (finding.severity, finding.line, finding.names) == ("error", 4, ("v",))
    assert finding.lines == {"raised": 4, "viewed": 3}
    assert "view of `h`" in finding.message
    assert finding.fix == "v = v.detach()"


def test_silent_on_what_is_no_view():
    assert told(RULE, H + "h.detach_()\nv = h[:2].detach()\n") == []
