"""What to do about a hang of an AMD GPU, by how it ended."""

from __future__ import annotations


def action(outcome: str, because: str | None) -> str:
    """Return what to do.

    Args:
        outcome: failed, reset, begun, ring, soft or none.
        because: words for a fault of the same GPU that explains the hang, if there is one.
    """
    if outcome == "failed":
        return (
            "Drain the node and reboot it; where the GPU does not come back, switch the power off "
            "and on (full power cycle). If reset keeps failing, open a case with the vendor, with "
            "the kernel log from the first hang on."
        )
    again = (
        " If it recurs, look for a program whose kernel never yields or reads what is not mapped "
        "(run it alone, then under rocgdb), and update driver and firmware together; if it "
        "follows the GPU and not the program, have the hardware checked."
    )
    if because is not None:
        return f"Deal with {because} first. Then restart the jobs that ran here."
    if outcome in ("ring", "soft"):
        return "Restart the job that was cut off, if it did not go on." + again
    if outcome == "none":
        return (
            "Stop the jobs on this GPU and reset it (amd-smi reset --gpureset --gpu N); if that "
            "fails, reboot the node." + again
        )
    if outcome == "begun":
        return (
            "Look for the end of the reset (dmesg | grep -i 'GPU reset'): if it failed, reboot "
            "the node; if it succeeded, restart the jobs." + again
        )
    return "Restart the jobs that ran on this GPU (from their last checkpoint)." + again
