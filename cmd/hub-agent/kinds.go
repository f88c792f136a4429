package main

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// explainMissingKinds returns what to do if the agent cannot begin because the hub does not serve kinds of the fleet. Helm installs them
// with the chart, but neither with an upgrade nor where crds are skipped.
func explainMissingKinds(err error) error {
	if !isMissingKind(err) {
		return err
	}
	return fmt.Errorf("the hub does not serve all kinds of the fleet: install their CustomResourceDefinitions with kubectl fleet init, or with "+
		"kubectl apply --server-side -f deploy/charts/hub-agent/crds (%w)", err)
}

func isMissingKind(err error) bool {
	if err == nil || meta.IsNoMatchError(err) {
		return err != nil
	}
	failed := &apiutil.ErrResourceDiscoveryFailed{}
	if !errors.As(err, &failed) || len(*failed) == 0 {
		return false
	}
	for _, cause := range *failed { // an API server that is away misses nothing
		if !apierrors.IsNotFound(cause) && !meta.IsNoMatchError(cause) {
			return false
		}
	}
	return true
}
