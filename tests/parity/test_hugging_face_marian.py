"""With the same weights, the model gives what Hugging Face's MarianMT gives."""

from __future__ import annotations

import pytest
import torch

from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.exchange.fairseq import fill_translator
from regard.models.build import TransformerPlan

transformers = pytest.importorskip("transformers")


@pytest.mark.parametrize("activation", ["swish", "relu"])
def test_logits_and_greedy_outputs_equal_marian(activation: str) -> None:
    torch.manual_seed(6)
    config = transformers.MarianConfig(
        vocab_size=40,
        d_model=32,
        encoder_layers=3,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=64,
        activation_function=activation,
        scale_embedding=True,
        init_std=0.3,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
    )
    theirs = transformers.MarianMTModel(config).eval()
    theirs.final_logits_bias.normal_()
    ours = TransformerPlan(
        layers=3,
        decoder_layers=2,
        model_dim=32,
        heads=4,
        feed_forward=48,
        activation=activation,
        sinusoids="halves",
        tie="all",
        output_bias=True,
    ).translator(source_vocab=40, target_vocab=40)
    tensors = theirs.state_dict()
    fill_translator(ours, tensors, prefix="model.")
    with torch.no_grad():
        ours.projection.weight.copy_(tensors["model.shared.weight"])
        ours.projection.bias.copy_(theirs.final_logits_bias[0])
    ours.eval()

    source, target = torch.randint(4, 40, (3, 9)), torch.randint(4, 40, (3, 7))
    mask = torch.ones(3, 9, dtype=torch.bool)
    mask[1, 4:] = False
    with torch.no_grad():
        expected = theirs(
            input_ids=source, attention_mask=mask.long(), decoder_input_ids=target
        ).logits
        found = ours.project(ours(source, mask, target).features)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)

    limits = torch.full((3,), 20)
    with torch.no_grad():
        generated = theirs.generate(
            input_ids=source,
            attention_mask=mask.long(),
            do_sample=False,
            num_beams=1,
            max_new_tokens=19,
            bad_words_ids=[[0], [2]],
        )
    outputs = greedy_search(ours, source, mask, rules=Rules(limits=limits))
    for row, (hypothesis,) in zip(generated.tolist(), outputs, strict=True):
        plain = [symbol for symbol in row[1:] if symbol not in (0, 3)]
        assert list(hypothesis.tokens) == plain
