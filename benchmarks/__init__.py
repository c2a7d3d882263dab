"""Benchmarks of gpuwhy: ``python -m benchmarks`` measures and prints one table.

Every figure stands beside something measured in the same run (a floor, or another program that
does the same), since absolute times say more about the machine than about the program.
"""
