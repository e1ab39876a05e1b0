"""Operands on different devices: what is refused, and what is allowed."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from torchmod.verify.checks.expecting import APART, on_cuda, raises, two_devices


def adding_is_refused() -> None:
    raises(RuntimeError, APART, lambda: torch.ones(2) + torch.ones(2).cuda())
    raises(RuntimeError, APART, lambda: torch.ones(2).cuda() + torch.ones(2))


def a_linear_layer_refuses() -> None:
    layer = nn.Linear(2, 2).cuda()
    raises(RuntimeError, APART, lambda: layer(torch.ones(1, 2)))


def a_loss_refuses() -> None:
    raises(RuntimeError, APART, lambda: F.cross_entropy(torch.ones(2, 3).cuda(), torch.tensor([0, 1])))
    raises(RuntimeError, APART, lambda: nn.MSELoss()(torch.ones(2).cuda(), torch.ones(2)))


@two_devices
def two_gpus_do_not_mix() -> None:
    raises(RuntimeError, APART, lambda: torch.ones(2).to("cuda:0") + torch.ones(2).to("cuda:1"))
    raises(RuntimeError, APART, lambda: torch.ones(2).to("cuda:0") + torch.tensor(1.0).to("cuda:1"))


def concatenation_is_refused() -> None:
    raises(RuntimeError, APART, lambda: torch.cat([torch.ones(2), torch.ones(2).cuda()]))
    raises(RuntimeError, APART, lambda: torch.stack([torch.ones(2).cuda(), torch.ones(2)]))


def adding_in_place_is_refused() -> None:
    raises(RuntimeError, APART, lambda: torch.ones(2).cuda().add_(torch.ones(2)))
    raises(RuntimeError, APART, lambda: torch.ones(2).add_(torch.ones(2).cuda()))


def a_sum_on_the_cpu_does_not_take_a_loss_of_the_device() -> None:
    total, loss = torch.tensor(0.0), torch.ones(2).cuda().mean()
    raises(RuntimeError, APART, lambda: total.add_(loss))
    assert not total.is_cuda
    assert (total + loss).is_cuda


def a_recurrent_layer_refuses_a_hidden_state() -> None:
    layer, hidden = nn.LSTM(2, 3).cuda(), (torch.zeros(1, 1, 3), torch.zeros(1, 1, 3))
    raises(RuntimeError, "same device", lambda: layer(torch.ones(4, 1, 2).cuda(), hidden))


def a_convolution_refuses() -> None:
    layer = nn.Conv2d(1, 1, 3).cuda()
    raises(RuntimeError, "should be the same", lambda: layer(torch.ones(1, 1, 5, 5)))


def an_embedding_refuses() -> None:
    layer = nn.Embedding(3, 2).cuda()
    raises(RuntimeError, APART, lambda: layer(torch.tensor([0, 1])))


def lengths_of_packed_sequences_stay_on_the_cpu() -> None:
    padded = torch.ones(3, 2, 1).cuda()
    packed = nn.utils.rnn.pack_padded_sequence(padded, torch.tensor([3, 2]))
    assert packed.data.is_cuda
    assert not packed.batch_sizes.is_cuda
    lengths = torch.tensor([3, 2]).cuda()
    raises(RuntimeError, "1D CPU int64", lambda: nn.utils.rnn.pack_padded_sequence(padded, lengths))


def ctc_takes_targets_and_lengths_from_the_cpu() -> None:
    scores = torch.randn(10, 1, 4).cuda().log_softmax(2)
    lengths = torch.IntTensor([10]), torch.IntTensor([2])
    targets = torch.IntTensor([1, 2])
    assert F.ctc_loss(scores, targets, *lengths).is_cuda
    assert F.ctc_loss(scores, targets.long().cuda(), target_lengths=lengths[1], input_lengths=lengths[0]).is_cuda


def a_grid_refuses() -> None:
    raises(RuntimeError, "same device", lambda: torch.meshgrid(torch.ones(2), torch.ones(2).cuda(), indexing="ij"))


def functions_of_python_are_applied_on_the_cpu_only() -> None:
    raises(TypeError, "only implemented on CPU", lambda: torch.ones(2).cuda().apply_(lambda value: value))
    assert torch.ones(2).apply_(lambda value: value + 1).tolist() == [2, 2]


def a_cpu_tensor_without_dimensions_is_allowed() -> None:
    assert on_cuda(torch.ones(2).cuda() * torch.tensor(2.0), torch.tensor(2.0) * torch.ones(2).cuda())
    raises(RuntimeError, APART, lambda: torch.ones(2) * torch.tensor(2.0).cuda())


def only_pointwise_operators_take_a_cpu_tensor_without_dimensions() -> None:
    number, there, index = torch.tensor(1.0), torch.ones(3).cuda(), torch.tensor(1)
    raises(RuntimeError, APART, lambda: torch.stack([there.sum(), number]))
    raises(RuntimeError, APART, lambda: there.index_select(0, index))
    raises(RuntimeError, APART, lambda: there.gather(0, index))
    raises(RuntimeError, APART, lambda: nn.Embedding(3, 2).cuda()(index))
    raises(RuntimeError, APART, lambda: F.cross_entropy(there, index))
    raises(RuntimeError, "", lambda: F.mse_loss(there.sum(), number))  # an assertion of torch itself
    raises(RuntimeError, "", lambda: torch.equal(there.sum(), number))


def pointwise_operators_take_a_cpu_tensor_without_dimensions() -> None:
    number, there = torch.tensor(2.0), torch.ones(3).cuda()
    assert on_cuda(
        there + number,
        number / there,
        there // number,
        there**number,
        there > number,
        torch.where(there > 0, there, number),
        torch.where(torch.tensor(True), there, there),
        there.clamp(min=number),
        torch.maximum(there, number),
        torch.lerp(there, there, number),
        torch.addcmul(there, there, number),
        there.clone().mul_(number).floor_divide_(number).eq_(number),
        there.masked_fill(there > 0, number),
        there.clone().masked_fill_(there > 0, number),
        F.binary_cross_entropy_with_logits(there, there, pos_weight=number),
    )


def a_value_without_dimensions_is_filled_in_from_anywhere() -> None:
    for target in (torch.zeros(3), torch.zeros(3).cuda()):
        for value in (torch.tensor(2.0), torch.tensor(2.0).cuda()):
            index = torch.tensor([0, 2]).to(target.device)
            assert target.clone().fill_(value).tolist() == [2, 2, 2]
            assert target.clone().index_fill_(0, index, value).tolist() == [2, 0, 2]
            assert target.index_put((index,), value).tolist() == [2, 0, 2]
    assert not torch.zeros(3).fill_(torch.tensor(2.0).cuda()).is_cuda


def integers_are_not_multiplied_as_matrices() -> None:
    square, vector = torch.ones(2, 2).long().cuda(), torch.ones(2).long().cuda()
    raises(RuntimeError, "not implemented for 'Long'", lambda: square @ square)
    raises(RuntimeError, "not implemented for 'Long'", lambda: square @ vector)
    raises(RuntimeError, "not implemented for 'Long'", lambda: vector @ vector)
    raises(RuntimeError, "not implemented for 'Int'", lambda: torch.bmm(square[None].int(), square[None].int()))
    assert on_cuda(square * square, square.float() @ vector.float())


def copying_across_is_allowed() -> None:
    here, there = torch.ones(2), torch.zeros(2).cuda()
    there.copy_(here)
    assert there.sum().item() == 2
    assert there.is_cuda
    here.copy_(there)
    assert not here.is_cuda
    there[0] = 5
    there[1] = torch.tensor(6.0)
    assert there.tolist() == [5, 6]


def an_index_may_be_on_the_cpu() -> None:
    there, index = torch.arange(4.0).cuda(), torch.tensor([1, 2])
    assert there[index].is_cuda
    assert there[index].tolist() == [1, 2]
    assert there[torch.tensor([True, False, True, False])].tolist() == [0, 2]
    there[index] = 0
    assert there.tolist() == [0, 0, 0, 3]
    raises(RuntimeError, "indices should be", lambda: torch.arange(4.0)[index.cuda()])


def a_gradient_of_another_device_is_refused() -> None:
    parameter = torch.ones(2, device="cuda", requires_grad=True)
    raises(RuntimeError, "device type", lambda: setattr(parameter, "grad", torch.ones(2)))
    parameter.grad = torch.ones(2).cuda()
    assert parameter.grad.is_cuda
