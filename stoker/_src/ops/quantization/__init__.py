"""Quantized numbers: conversion, fake quantization, layers on them."""
