"""LLM servers (vLLM, SGLang, TensorRT-LLM, Triton, TGI, Dynamo): their metrics and log lines.

`engine.readers.serving.services` makes services of exporter text and `engine.readers.serving.log`
of log lines; `engine.readers.serving.verdicts` says what both show.
"""
