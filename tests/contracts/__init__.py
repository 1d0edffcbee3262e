"""What every source and every target does, whatever the product."""

import pytest

pytest.register_assert_rewrite(
    "contracts.sample", "contracts.source_contract", "contracts.target_contract"
)
