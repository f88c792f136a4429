package v1beta1

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesOfMembers(t *testing.T) {
	tests := map[string]struct{ got, want string }{
		"the namespace":      {MemberNamespace("eu"), "fleet-member-eu"},
		"the role":           {MemberRoleName("eu"), "fleet-role-eu"},
		"the role binding":   {MemberRoleBindingName("eu"), "fleet-rolebinding-eu"},
		"the finalizer":      {MemberClusterFinalizer, "kubernetes-fleet.io/membercluster-finalizer"},
		"the node count":     {string(NodeCountProperty), "kubernetes-fleet.io/node-count"},
		"the label by name":  {MemberNameLabel, "kubernetes-fleet.io/member-name"},
		"the fleet's marker": {FleetResourceLabel, "kubernetes-fleet.io/is-fleet-resource"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, tc.got) })
	}
}

func TestMemberOfNamespace(t *testing.T) {
	tests := map[string]struct {
		namespace string
		member    string
		found     bool
	}{
		"a member's namespace":              {MemberNamespace("eu"), "eu", true},
		"a member with a prefix-like name":  {MemberNamespace("fleet-member-eu"), "fleet-member-eu", true},
		"the namespace of the fleet itself": {SystemNamespace, "", false},
		"the prefix alone":                  {"fleet-member-", "", false},
		"somebody else's namespace":         {"work", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			member, found := MemberOfNamespace(tc.namespace)
			assert.Equal(t, tc.member, member)
			assert.Equal(t, tc.found, found)
		})
	}
}
