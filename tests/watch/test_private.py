"""Every private name that is relied on does what is relied on, in the torch that is installed."""

from __future__ import annotations

import torch
from torch.utils.hooks import RemovableHandle

from tensormagic.watch import private


def test_sequence_numbers_tell_which_call_made_a_node():
    x = torch.ones(1, requires_grad=True)
    before = private.sequence_number()
    y = x * 2
    assert before <= private.node_number(y.grad_fn) < private.sequence_number()


def test_the_engine_entry_is_used_by_every_way_in(monkeypatch):
    assert private.has_engine_entry()
    seen = []
    original = getattr(torch.autograd, private.ENGINE_ENTRY)
    monkeypatch.setattr(torch.autograd, private.ENGINE_ENTRY, lambda *a, **k: seen.append(1) or original(*a, **k))
    x = torch.ones(1, requires_grad=True)
    (x * 2).backward()
    torch.autograd.backward((x * 2).sum())
    torch.autograd.grad((x * 2).sum(), x)
    assert len(seen) == 3


def test_getters_read_what_the_attributes_say():
    x = torch.ones(2, 3, requires_grad=True)[1:]
    assert private.get_shape(x) == x.shape
    assert private.get_stride(x) == x.stride()
    assert private.get_offset(x) == 3
    assert private.get_version(x) == x._version
    assert private.get_storage(x) is x.untyped_storage()
    assert private.get_is_view(x)


def test_a_mode_is_left_wherever_it_lies():
    class Mode(torch.overrides.TorchFunctionMode):
        pass

    ours, theirs = Mode(), Mode()
    ours.__enter__()
    theirs.__enter__()
    private.leave_function_mode(ours)
    assert private.function_modes() == 1
    theirs.__exit__(None, None, None)
    assert private.function_modes() == 0


def test_wrapped_tensors_are_known():
    seen = []
    torch.vmap(lambda a: seen.append(private.is_wrapped(a)) or a)(torch.ones(2))
    assert seen == [True]
    assert not private.is_wrapped(torch.ones(1))
    assert private.dispatch_modes() == 0


def test_hooks_for_saved_tensors_and_dispatch_modes_are_seen():
    from torch.utils._python_dispatch import TorchDispatchMode

    assert private.saved_hooks(True) is None
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert private.saved_hooks(True) is not None
    with TorchDispatchMode():
        assert private.dispatch_modes() == 1
    assert private.dispatch_modes() == 0


def test_the_address_of_a_storage_is_one_for_all_views():
    x, y = torch.ones(2, 3), torch.ones(2, 3)
    assert private.storage_address(x) == private.storage_address(x[1:].t())
    assert private.storage_address(x) != private.storage_address(y)


def test_hooks_of_ours_take_no_number_from_the_users(monkeypatch):
    seen = []
    w = torch.ones(2, requires_grad=True)
    y = w * 2
    before = RemovableHandle.next_id
    ours = private.register_hook(y.grad_fn, lambda inputs, outputs: seen.append("ours"))
    users = y.grad_fn.register_hook(lambda inputs, outputs: seen.append("user's"))
    assert users.id == before and RemovableHandle.next_id == before + 1
    assert ours.id < 0
    y.sum().backward(retain_graph=True)
    assert seen == ["ours", "user's"]
    ours.remove()
    y.sum().backward()
    assert seen == ["ours", "user's", "user's"]
    monkeypatch.delattr(RemovableHandle, "next_id")
    monkeypatch.setattr(RemovableHandle, "__init__", lambda handle, hooks: setattr(handle, "id", 7))
    assert private.register_hook((w * 2).grad_fn, lambda inputs, outputs: None).id == 7
