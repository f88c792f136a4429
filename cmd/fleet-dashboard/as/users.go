package as

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/client-go/rest"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// reserved are what names of users and groups begin with that belong to Kubernetes itself.
var reserved = []string{"system:", "kubeadm:"}

// ErrReserved means that the dashboard does not act as a user, because the name or a group is one of Kubernetes itself.
var ErrReserved = errors.New("names of Kubernetes itself are not for people")

// Check returns ErrReserved for a user or groups that the dashboard never acts as. Empty names are none.
func Check(user string, groups []string) error {
	for _, name := range append([]string{user}, groups...) {
		if strings.TrimSpace(name) == "" {
			return fmt.Errorf("a user or a group without a name: %w", ErrReserved)
		}
		if strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("%q, which another name may stand for on its way to the API server: %w", name, ErrReserved)
		}
		for _, prefix := range reserved {
			if strings.HasPrefix(name, prefix) {
				return fmt.Errorf("%q: %w", name, ErrReserved)
			}
		}
	}
	return nil
}

// User returns the configuration that acts as a user by impersonation, with the account of a configuration. The API server
// then knows that it is the dashboard that writes.
func User(config *rest.Config, user string, groups []string) (*rest.Config, error) {
	if err := Check(user, groups); err != nil {
		return nil, err
	}
	acting := rest.CopyConfig(config)
	acting.Impersonate = rest.ImpersonationConfig{
		UserName: user, Groups: groups,
		Extra: map[string][]string{placementv1beta1.ApprovalChannelExtra: {string(placementv1beta1.ApprovalChannelDashboard)}},
	}
	return acting, nil
}

// Bearer returns the configuration that acts with a token, and with nothing of the account of a configuration.
func Bearer(config *rest.Config, token string) *rest.Config {
	acting := rest.AnonymousClientConfig(config)
	acting.BearerToken = token
	return acting
}
