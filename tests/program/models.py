"""Small models of packages that nobody here wrote: each entry makes a module, its inputs and a loss, all from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Made = tuple[torch.nn.Module, Callable[[torch.nn.Module], torch.Tensor]]  # the model, and its loss on fixed inputs

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def _tokens(*shape: int) -> torch.Tensor:
    return torch.randint(3, 90, shape or (2, 12))


def _language(config: str, model: str, **options: Any) -> Made:
    import transformers

    settings = getattr(transformers, config)(vocab_size=96, attn_implementation="eager", **options)
    tokens = _tokens()
    return getattr(transformers, model)(settings), lambda net: net(input_ids=tokens, labels=tokens).loss


def gpt2() -> Made:
    return _language(
        "GPT2Config", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=32, bos_token_id=1, eos_token_id=2
    )


def bert() -> Made:
    return _language("BertConfig", "BertForMaskedLM", **SIZES)


def llama() -> Made:
    return _language("LlamaConfig", "LlamaForCausalLM", num_key_value_heads=2, **SIZES)


def t5() -> Made:
    return _language(
        "T5Config", "T5ForConditionalGeneration", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )  # fmt: skip


def mixtral() -> Made:
    return _language(
        "MixtralConfig", "MixtralForCausalLM", num_key_value_heads=2, num_local_experts=3, num_experts_per_tok=2, **SIZES
    )  # fmt: skip


def mamba() -> Made:
    return _language("MambaConfig", "MambaForCausalLM", hidden_size=32, num_hidden_layers=2, state_size=4)


def vit() -> Made:
    import transformers

    settings = transformers.ViTConfig(image_size=16, patch_size=4, num_labels=5, attn_implementation="eager", **SIZES)
    pixels, labels = torch.randn(2, 3, 16, 16), torch.tensor([1, 3])
    return transformers.ViTForImageClassification(settings), lambda net: net(pixel_values=pixels, labels=labels).loss


def whisper() -> Made:
    import transformers

    settings = transformers.WhisperConfig(
        vocab_size=96, num_mel_bins=8, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=16, max_target_positions=16,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, attn_implementation="eager",
    )  # fmt: skip
    sound, tokens = torch.randn(2, 8, 32), _tokens(2, 6)
    return transformers.WhisperForConditionalGeneration(
        settings
    ), lambda net: net(input_features=sound, labels=tokens).loss


def clip() -> Made:
    import transformers

    settings = transformers.CLIPConfig(
        text_config={"vocab_size": 96, "max_position_embeddings": 16, "eos_token_id": 2, **SIZES},
        vision_config={"image_size": 16, "patch_size": 8, **SIZES}, projection_dim=16, attn_implementation="eager",
    )  # fmt: skip
    tokens, pixels = _tokens(2, 6), torch.randn(2, 3, 16, 16)
    return transformers.CLIPModel(
        settings
    ), lambda net: net(input_ids=tokens, pixel_values=pixels, return_loss=True).loss


def _graph(layer: str) -> Made:
    from torch_geometric import nn

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = getattr(nn, layer)(8, 16), getattr(nn, layer)(16, 3)

        def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
            return self.second(torch.nn.functional.dropout(self.first(x, edges).relu(), training=self.training), edges)

    x, edges, labels = torch.randn(20, 8), torch.randint(0, 20, (2, 60)), torch.randint(0, 3, (20,))
    return Net(), lambda net: torch.nn.functional.cross_entropy(net(x, edges), labels)


def gcn() -> Made:
    return _graph("GCNConv")


def gat() -> Made:
    return _graph("GATConv")


def diffusion_unet() -> Made:
    import diffusers

    net = diffusers.UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8,
    )  # fmt: skip
    clean, noise, times = torch.randn(2, 1, 8, 8), torch.randn(2, 1, 8, 8), torch.tensor([3, 70])
    noisy = diffusers.DDPMScheduler().add_noise(clean, noise, times)
    return net, lambda net: torch.nn.functional.mse_loss(net(noisy, times).sample, noise)


def convolutions() -> Made:
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1, groups=4), nn.GroupNorm(4, 16), nn.SiLU(inplace=True), nn.Dropout2d(0.2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip
    pixels, labels = torch.randn(4, 3, 12, 12), torch.randint(0, 5, (4,))
    return net, lambda net: nn.functional.cross_entropy(net(pixels), labels)


def packed_lstm() -> Made:
    from torch.nn.utils import rnn

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(96, 16, padding_idx=0)
            self.lstm = torch.nn.LSTM(16, 12, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
            self.head = torch.nn.Linear(24, 3)

        def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = rnn.pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
            out, _ = rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
            return self.head(out[torch.arange(len(lengths)), lengths - 1])

    tokens, lengths, labels = _tokens(4, 9), torch.tensor([9, 3, 5, 1]), torch.randint(0, 3, (4,))
    return Net(), lambda net: torch.nn.functional.cross_entropy(net(tokens, lengths), labels)


MODELS: dict[str, tuple[str | None, Callable[[], Made]]] = {
    **{make.__name__: ("transformers", make) for make in (gpt2, bert, llama, t5, mixtral, mamba, vit, whisper, clip)},
    **{make.__name__: ("torch_geometric", make) for make in (gcn, gat)},
    "diffusion_unet": ("diffusers", diffusion_unet),
    "convolutions": (None, convolutions),
    "packed_lstm": (None, packed_lstm),
}
