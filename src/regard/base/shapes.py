"""The one vocabulary of shapes; the axis words are those of the papers, in full.

batch      sentences in a batch             source     positions of the source sentence
target     positions of the target          heads      attention heads
head_dim   width of one head                model_dim  width of the model's features
hidden     width of a recurrent state       vocab      entries of a vocabulary
key_dim    width of what is attended to     query_dim  width of a query
layers     layers of a stack                time       steps of any one sequence

Masks are boolean everywhere, and True means: may attend.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Bool", "Float", "Int", "Tensor"]
