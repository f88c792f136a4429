package override

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Hash tells what overrides say apart: the SHA-256 sum of their specs, in hexadecimal digits. How the
// values of patches are written, their spaces and the order of their keys, does not go into it.
func Hash(override placementv1beta1.OverrideObject) ([]byte, error) {
	written, err := json.Marshal(override.GetOverrideSpec())
	if err != nil {
		return nil, fmt.Errorf("hashing an override: %w", err)
	}
	content, err := decodeJSON(written)
	if err != nil {
		return nil, fmt.Errorf("hashing an override: %w", err)
	}
	canonical, err := json.Marshal(content) // the keys of maps come in order
	if err != nil {
		return nil, fmt.Errorf("hashing an override: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.AppendEncode(nil, sum[:]), nil
}
