"""Texts of words that are one token each, and their tokenizer."""
import random

import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = 1000


def tokenizer():
    """One token a word, and the ends of texts."""
    words = {"<pad>": 0, "<eos>": 1, **{f"w{number}": number + 2 for number in range(WORDS)}}
    made = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")


def text(count):
    return "".join(f" w{random.randrange(WORDS)}" for _ in range(count))
