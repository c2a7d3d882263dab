"""Errors that programs print when a call to the GPU fails: out of memory, CUDA and HIP errors."""
