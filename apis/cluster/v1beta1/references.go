package v1beta1

import corev1 "k8s.io/api/core/v1"

// ReferTo returns the reference to a MemberCluster, as the related object of an event about it.
func ReferTo(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: GroupVersion.String(), Kind: "MemberCluster", Name: name}
}
