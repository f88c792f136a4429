package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SelectNames returns the selector of the MemberClusters with the names, by the label that each of them has of its name.
func SelectNames(names ...string) *metav1.LabelSelector {
	return selectByName(metav1.LabelSelectorOpIn, names)
}

// SelectOtherNames returns the selector of all MemberClusters but those with the names.
func SelectOtherNames(names ...string) *metav1.LabelSelector {
	return selectByName(metav1.LabelSelectorOpNotIn, names)
}

func selectByName(operator metav1.LabelSelectorOperator, names []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: MemberNameLabel, Operator: operator,
		Values: names}}}
}
