// What of this library the page uses, for `tsc --checkJs`. Written by hand.
type Html = (strings: TemplateStringsArray, ...values: unknown[]) => unknown;
declare const htm: { bind(h: unknown): Html };
export default htm;
