package main

import (
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// topic is a chapter of the reference.
type topic struct {
	title, intro string
	kinds        []string
}

// topics are the chapters, and the order of kinds. Where a part of an object occurs in more than one kind, it is
// written out in the first of them, so kinds that users write come before kinds that are written for them.
func topics() []topic {
	return []topic{
		{"Clusters", "Which clusters belong to the fleet.", []string{"MemberCluster"}},
		{"Placement", "What is placed, and where.", []string{
			"ClusterResourcePlacement", "ResourcePlacement", "ClusterResourcePlacementStatus",
			"ClusterResourceEnvelope", "ResourceEnvelope",
		}},
		{"Overrides", "How what is placed differs from cluster to cluster.", []string{"ClusterResourceOverride", "ResourceOverride"}},
		{"Staged updates", "How a change goes through the fleet stage by stage.", []string{
			"ClusterStagedUpdateStrategy", "StagedUpdateStrategy", "ClusterStagedUpdateRun", "StagedUpdateRun",
			"ClusterApprovalRequest", "ApprovalRequest",
		}},
		{"Disruption", "What may be taken away from a cluster, and how much at once.", []string{
			"ClusterResourcePlacementEviction", "ClusterResourcePlacementDisruptionBudget",
		}},
		{"Written by the fleet", "To look at when something is not as it should be. The agents write these; nobody else needs to.", []string{
			"InternalMemberCluster", "ClusterSchedulingPolicySnapshot", "SchedulingPolicySnapshot", "ClusterResourceSnapshot",
			"ResourceSnapshot", "ClusterResourceOverrideSnapshot", "ResourceOverrideSnapshot", "ClusterResourceBinding",
			"ResourceBinding", "Work", "AppliedWork",
		}},
	}
}

// kind is a kind of the reference.
type kind struct {
	topic *topic
	crd   *apiextensionsv1.CustomResourceDefinition
	// root describes an object of the kind; every version has the same.
	root *apiextensionsv1.JSONSchemaProps
}

func (k *kind) name() string { return k.crd.Spec.Names.Kind }

// arrange brings kinds into the order of the chapters. Every kind has a place in one chapter, every place a kind.
func arrange(crds map[string]*apiextensionsv1.CustomResourceDefinition) ([]*kind, error) {
	var kinds []*kind
	var problems []error
	for _, chapter := range topics() {
		for _, name := range chapter.kinds {
			crd, found := crds[name]
			if !found {
				problems = append(problems, fmt.Errorf("the chapter %s has kind %s, which has no CRD", chapter.title, name))
				continue
			}
			kinds = append(kinds, &kind{topic: &chapter, crd: crd, root: crd.Spec.Versions[0].Schema.OpenAPIV3Schema})
		}
	}
	for name := range crds {
		if !slices.ContainsFunc(kinds, func(k *kind) bool { return k.name() == name }) {
			problems = append(problems, fmt.Errorf("kind %s is in no chapter: add it to topics()", name))
		}
	}
	return kinds, errors.Join(problems...)
}
