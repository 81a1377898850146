"""Quantization: conversion, fake quantization, and quantized layers."""
