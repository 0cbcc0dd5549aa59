mod sums;
