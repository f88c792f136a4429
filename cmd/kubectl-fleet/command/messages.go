package command

import (
	"context"
	"errors"
	"fmt"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// readChannels reads the channels.
func readChannels(reader hub.Reader, ctx context.Context) ([]*fleetflowv1alpha1.NotificationChannel, error) {
	var list fleetflowv1alpha1.NotificationChannelList
	if err := reader.List(ctx, &list); err != nil {
		return nil, explainMessages(err, "channels")
	}
	return pointersTo(list.Items, func(c *fleetflowv1alpha1.NotificationChannel) {
		c.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("NotificationChannel"))
	}), nil
}

// readRules reads the rules.
func readRules(reader hub.Reader, ctx context.Context) ([]*fleetflowv1alpha1.NotificationRule, error) {
	var list fleetflowv1alpha1.NotificationRuleList
	if err := reader.List(ctx, &list); err != nil {
		return nil, explainMessages(err, "rules")
	}
	return pointersTo(list.Items, func(r *fleetflowv1alpha1.NotificationRule) {
		r.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("NotificationRule"))
	}), nil
}

// explainMessages says why channels or rules could not be read.
func explainMessages(err error, words string) error {
	if hub.Unserved(err) {
		return errors.New("this hub sends no messages: it serves neither channels nor rules; upgrade the chart of the hub agent")
	}
	return fmt.Errorf("listing the %s: %w", words, err)
}
