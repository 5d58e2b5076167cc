"""Transformers for onnxruntime: graphs, the files of an export, and a check in onnxruntime."""
