"""The shortest script of insertions and deletions between two sentences, by recursion."""


def edit_path(source, target, terminal):
    """Return lists of words inserted behind each prefix of the source, and which are deleted.

    Of several shortest scripts it is the one that, read from the end, inserts before it deletes
    and deletes before it lets a word stay.
    """
    insertions = [[] for _ in range(len(source) + 1)]
    deleted = []
    i, j = len(source), len(target)
    while i > 0 or j > 0:
        shortest = distance(source[:i], target[:j])
        if j > 0 and distance(source[:i], target[: j - 1]) == shortest - 1:
            j -= 1
            insertions[i] = [target[j], *insertions[i]]
        elif i > 0 and distance(source[: i - 1], target[:j]) == shortest - 1:
            i -= 1
            deleted = [1, *deleted]
        else:
            i, j = i - 1, j - 1
            deleted = [0, *deleted]
    return [*(words or [terminal] for words in insertions), deleted]


def distance(source, target):
    """Return the smallest number of insertions and deletions."""
    if not source or not target:
        return len(source) + len(target)
    if source[-1] == target[-1]:
        return distance(source[:-1], target[:-1])
    return 1 + min(distance(source[:-1], target), distance(source, target[:-1]))
