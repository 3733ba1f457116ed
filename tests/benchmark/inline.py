"""A worker of the benchmark without a process of its own: what `speed.worker.Worker` has."""

from speed.systems import Member


class Inline:
    """Calls to a ``Member`` in this process."""

    def __init__(self, row, data, folder, args):
        self.name, self.member, self.first_update = row.name, Member(row, data, folder, args), 1.0
        self.call("first")

    def call(self, method, *arguments):
        return getattr(self.member, method)(*arguments)

    def close(self):
        pass
