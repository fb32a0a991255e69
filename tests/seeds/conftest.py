from __future__ import annotations

import pytest

# So that a comparison that fails shows what differs.
pytest.register_assert_rewrite("tests.seeds.in_process")
