"""Tracing: functions of traced scalars become an expression graph."""
