package override

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"regexp"
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// asked is a value of a cluster that a variable stands for.
type asked struct {
	// kind is the place in lookups.
	kind int
	key  string
}

// askedKeys finds the keys of the variables of each of lookups.
var askedKeys = func() (patterns []*regexp.Regexp) {
	for _, l := range lookups {
		patterns = append(patterns, regexp.MustCompile(regexp.QuoteMeta(l.prefix)+`([^}]*)}`))
	}
	return patterns
}()

// askedValues returns what the rules of an override take values from, sorted.
func (s *spec) askedValues() []asked {
	var all []asked
	for _, rule := range s.rules {
		for _, operation := range rule.JSONPatchOverrides {
			for kind, keys := range askedKeys {
				for _, found := range keys.FindAllSubmatch(operation.Value.Raw, -1) {
					all = append(all, asked{kind, string(found[1])})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b asked) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key)) })
	return slices.Compact(all)
}

// Inputs returns a fingerprint of what decides, beside the names in Applicable, what an object
// looks like on a cluster: the content of the overrides and the values that variables
// stand for. It is empty if no override applies.
func (m *Matcher) Inputs(cluster Cluster) string {
	var sum hash.Hash
	for i := range m.overrides {
		override := &m.overrides[i]
		if !override.hasRuleFor(cluster) {
			continue
		}
		if sum == nil {
			sum = sha256.New()
		}
		// Writing to a hash never fails.
		_, _ = fmt.Fprintf(sum, "%s %x\n", override.source, override.content)
		for _, of := range override.asked {
			l := &lookups[of.kind]
			value, has := l.values(cluster)[of.key]
			if of.kind > 0 { // of labels the fingerprints are older than the others
				_, _ = fmt.Fprintf(sum, "%s ", l.what)
			}
			_, _ = fmt.Fprintf(sum, "%q %q %t\n", of.key, value, has)
		}
	}
	if sum == nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:fingerprintLength]
}

// IsSnapshotOf reports whether a snapshot shows what an override with a hash says. That of another author states another hash
// of the same content.
func IsSnapshotOf(snapshot placementv1beta1.OverrideSnapshotObject, hash []byte) (bool, error) {
	if bytes.Equal(snapshot.GetOverrideHash(), hash) {
		return true, nil
	}
	content, err := Hash(snapshot)
	return bytes.Equal(content, hash), err
}

// Hash returns what tells overrides apart: the SHA-256 sum of their specs, in hexadecimal digits, as KubeFleet states it. The API server
// stores the values of patches in one way, however they were written.
func Hash(override interface{ GetOverrideSpec() any }) ([]byte, error) {
	written, err := json.Marshal(override.GetOverrideSpec())
	if err != nil {
		return nil, fmt.Errorf("hashing an override: %w", err)
	}
	sum := sha256.Sum256(written)
	return hex.AppendEncode(nil, sum[:]), nil
}
