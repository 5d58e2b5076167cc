"""The Transformer: blocks, encoders and decoders."""
