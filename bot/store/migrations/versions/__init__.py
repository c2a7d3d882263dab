"""The changes. A file that was released is never changed; the next one goes on from there."""
