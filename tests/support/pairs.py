"""Tiny random pairs of language models for tests: real architectures and file formats, nothing downloaded.

The numbers mean nothing, but the computation is that of the large models. Initial weights are wide (0.3), so that the
two models disagree and an error in a term shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scoring.pair.settings import PairSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Architecture = Literal["falcon", "llama", "gpt2"]
ARCHITECTURES: tuple[Architecture, ...] = ("falcon", "llama", "gpt2")
END = "<|endoftext|>"
_SENTENCES = (
    "The harbour was quiet in the morning, and the boats that had come in late were still being unloaded.",
    "It is not what the council had said it would be, but there were people who thought that it was better.",
    "She wrote to them about the garden, which had grown so much that it could no longer be seen from the road.",
    'Numbers such as 1984, 3.14 and 42 are in it as well; so are (brackets), "quotes" and a dash - here.',
)


class Pair(NamedTuple):
    observer: Path
    performer: Path


def build_pair(
    folder: Path, architecture: Architecture, *, head_width: int | None = None, positions: int = 2048
) -> Pair:
    """Write an observer and a performer below `folder`; `head_width` of their output: by default the words, to 8."""
    import torch
    import transformers

    quiet: Any = transformers.utils.logging.disable_progress_bar
    quiet()
    from_config: Any = transformers.AutoModelForCausalLM.from_config
    tokenizer = build_tokenizer(architecture)
    width = head_width or -(-tokenizer.get_vocab_size() // 8) * 8
    folders = []
    for seed, name in enumerate(("observer", "performer")):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = from_config(_config(architecture, width, positions))
        place = folder / name
        model.eval().save_pretrained(place)
        save_tokenizer(tokenizer, place, architecture)
        folders.append(place)
    return Pair(*folders)


def settings_of(pair: Pair, **changes: Any) -> PairSettings:
    """Settings under which `pair` reads any text of at least two tokens on the CPU, with `changes`."""
    usual: dict[str, Any] = {"device": "cpu", "min_tokens": 2, "english_only": False, "batch_tokens": 512}
    return PairSettings(observer=str(pair.observer), performer=str(pair.performer), **(usual | changes))


def build_tokenizer(architecture: Architecture = "falcon", vocab: int = 300, extra: str = "") -> Tokenizer:
    """A byte-level BPE tokenizer trained on a few sentences and `extra`; a llama's puts <s> before a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>"] if architecture == "llama" else [END]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*_SENTENCES, *([extra] if extra else [])], trainer)
    if architecture == "llama":
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, architecture: Architecture = "falcon") -> None:
    """Write `tokenizer` into a model's folder in the format of the hub's models."""
    import transformers

    fast: Any = transformers.PreTrainedTokenizerFast
    names = {"bos_token": "<s>", "eos_token": "</s>"} if architecture == "llama" else {"eos_token": END}
    fast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def _config(architecture: Architecture, width: int, positions: int) -> Any:
    from transformers import AutoConfig

    for_model: Any = AutoConfig.for_model
    shared = {"vocab_size": width, "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 0}
    if architecture == "gpt2":
        return for_model("gpt2", n_embd=32, n_layer=2, n_head=4, n_positions=positions, **shared)
    shared |= {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": positions,
    }
    if architecture == "falcon":
        return for_model("falcon", multi_query=True, parallel_attn=True, bias=False, **shared)
    shared["eos_token_id"] = 1
    return for_model("llama", intermediate_size=64, num_key_value_heads=2, **shared)
